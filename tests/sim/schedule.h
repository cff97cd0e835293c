/* schedule: declares the parameters of one schedule, and what was observed so far. */
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

    /* attempts that faults may have ended; requests of people */
    int64_t harms;
    bool stop_asked;
    bool troubled, resume_wanted;
    bool damaged; /* recorded data were deleted: points without another copy may be missing */
    int64_t stop_ns, trouble_until_ns; /* when the stop was accepted; when the last fault is over */
    int64_t harm_until_ns;             /* when the last fault that can end an attempt is over */
    /* When the newest attempt that trained began to train, and its number. */
    int64_t trained_ns, trained_attempt;
    int64_t resumes, attempt_at_stop; /* attempt_at_stop 0: no stop was accepted */

    /* what was observed */
    bool ended; /* the run has ended in the store */
    int state, exit_code;
    int64_t attempt;
    char reason[512];
    char failure[1024]; /* the broken promise; "": none */
    int64_t points, events;
    int64_t grown; /* attempts that continued on nodes that had been lost */
} sim_schedule;
extern sim_schedule schedule;

typedef enum sim_profile {
    SIM_CALM,    /* no faults */
    SIM_QUIET,   /* only faults that must not end anything */
    SIM_ROUGH,   /* any faults */
    SIM_MIXED,   /* one of these, at random */
    SIM_CHANNEL, /* 19 hours, in which the connection to the nodes fails 25 times */
    SIM_DAMAGE,  /* any faults; in addition the store or a node's folder is deleted */
    SIM_CROSSED  /* several faults at once, and often a stop */
} sim_profile;

/* Reports a broken promise; only the first counts. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- command.c: people, and the timer that starts a missing supervisor */
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
void sim_fault_moment(sim_moment moment); /* the moment is now: starts faults that wait for it */

/* --- check.c */
void sim_check_begin(void);                          /* at the start of a world */
void sim_check_point(int64_t attempt, int64_t step); /* a rank made the step */
void sim_check_replaced(const void *proc);           /* the agent is killed to be replaced */
void sim_check_rank_begins(void *proc, int64_t attempt, int64_t rank);
void sim_check_now(void); /* periodically */
void sim_check_end(void); /* after the run has ended and all is quiet */
double sim_loss(int64_t attempt, int64_t step);

#endif
