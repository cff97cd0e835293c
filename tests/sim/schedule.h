/* schedule: what one schedule is, and what it has shown so far. */
#ifndef DT_SIM_SCHEDULE_H
#define DT_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_RUN   "simrun"
#define SIM_STATE "/state"

typedef struct sim_schedule {
    /* the run */
    int64_t nodes, ranks_per_node, nodes_min;
    int64_t steps, save_every, max_restarts;
    int64_t step_ns, save_ns;
    double grace_seconds, hang_seconds;
    const char *launcher_lost;
    bool first_here; /* node 0 is the launch machine */

    /* what may be the end of an attempt; what a person asked for */
    int64_t harms;
    bool stop_asked;
    bool troubled, resume_wanted;
    bool damaged; /* what was written down is gone: points may be, where nobody else had them */
    int64_t stop_ns, trouble_until_ns;   /* when it was accepted; when the last fault is over */
    int64_t harm_until_ns;               /* the same of those that end attempts */
    int64_t trained_ns, trained_attempt; /* when the newest that did began to train, and which */
    int64_t resumes, attempt_at_stop;    /* 0: none was accepted */

    /* what has been seen */
    bool ended; /* the store says so */
    int state, exit_code;
    int64_t attempt;
    char reason[512];
    char failure[1024]; /* which promise was broken; "" none */
    int64_t points, events;
} sim_schedule;
extern sim_schedule schedule;

typedef enum sim_profile {
    SIM_CALM,    /* nothing goes wrong */
    SIM_QUIET,   /* only what a run must not notice */
    SIM_ROUGH,   /* anything */
    SIM_MIXED,   /* one of these, drawn */
    SIM_CHANNEL, /* 19 hours, in which the way to the nodes fails 25 times */
    SIM_DAMAGE,  /* anything, and the store or a node's folder is deleted besides */
    SIM_CROSSED  /* anything, several at once and a stop among them */
} sim_profile;

/* A promise is broken; the first counts. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- command.c: people, and the timer that looks after a run without its supervisor */
void sim_command_launch(void);
void sim_command_stop(bool now);
void sim_command_resume(void);
void sim_command_watch(void);

/* --- fault.c */
typedef enum sim_moment {
    SIM_A_STOP_IS_ACCEPTED,
    SIM_A_RANK_BEGINS,
    SIM_RANKS_SAVE,
    SIM_RANKS_FINISH,
    SIM_A_RANK_ENDS,
    SIM_A_LOG_GROWS,
    SIM_MOMENTS
} sim_moment;
void sim_faults_draw(sim_profile profile);
void sim_fault_moment(sim_moment moment); /* it is now: some faults wait for one */

/* --- check.c */
void sim_check_begin(void);                          /* a new world */
void sim_check_point(int64_t attempt, int64_t step); /* a rank made it */
void sim_check_replaced(const void *proc);           /* an agent is ended for another */
void sim_check_rank_begins(void *proc, int64_t attempt, int64_t rank);
void sim_check_now(void); /* now and then */
void sim_check_end(void); /* the run has ended, and all is quiet */
double sim_loss(int64_t attempt, int64_t step);

#endif
