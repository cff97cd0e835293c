/* agent_int: what the files of the agent share.
 *
 * One process, one loop, one struct. Who does what:
 *   serve.c       lock, loop, timers, end of life       client.c      the supervisor's connection
 *   execute.c        what it asks for, is done             log.c         lines of the run's log
 *   start.c       `start`: plan → ranks                 rank.c        a rank's lines and its death
 *   rendezvous.c  values in, everyone's values out      ending.c      TERM → KILL → released
 *   recover.c     restarted on an existing journal      holder.c      who holds the lock
 *   lease.c       nobody supervises for too long        folder.c      the agent's own
 *   memory.c      what GPUs hold, before and after      cache_pins.c  what nobody may remove
 *   diagnose.c    what a rank that hangs does           helper.c      asking another program
 *   heartbeat.c   whether the ranks advance, with every `alive`
 *   fence_old_attempts.c                                what earlier attempts left here ends
 * and without the loop: activity.c run_in_child.c cgroup.c command.c event.c journal.c process.c spawn.c
 * tail.c text.c trim.c
 *
 * The ends of a node's life (ending.c):
 *
 *   NO ── a rank failed, or `stop` ──► TERM ── all gone, or the grace is over ──► KILL
 *   │                                                                              │
 *   └── all ranks exited, or a restarted agent ──────────────────────► PROOF ◄─────┘
 *                                                                        │
 *                                                                        ▼
 *                                                                       DONE
 */
#ifndef DT_AGENT_INT_H
#define DT_AGENT_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/boot.h"
#include "base/json.h"
#include "runner/agent/command.h"
#include "runner/agent/journal/journal.h"
#include "runner/agent/process/cgroup.h"
#include "runner/agent/process/environment.h"
#include "runner/agent/rank/devices.h"
#include "runner/agent/rank/tail.h"
#include "runner/channel/listener.h"
#include "runner/channel/poll_clock.h"
#include "runner/channel/stream.h"

typedef struct dt_agent dt_agent;
typedef struct dt_rank_diagnosis dt_rank_diagnosis;
typedef struct dt_helper dt_helper;

typedef struct dt_agent_output {
    struct dt_agent_rank *rank;
    dt_stream *stream;
    const char *name; /* "stdout", "stderr" */
} dt_agent_output;

typedef struct dt_agent_rank {
    dt_agent *agent;
    int64_t rank, local_rank, threads;
    char device[32];
    int64_t replicas; /* devices of it, from `device` on */
    pid_t pid;        /* 0: not started */
    int64_t start_ticks;
    int kernel_log;    /* what the kernel has said since before its start; -1: not readable */
    bool running;      /* started, and its death not yet seen */
    int wait_status;   /* from waitpid, between its death and its report */
    bool failed_first; /* said `failed` for a reason of its own, not because of a peer */
    dt_stream *channel;
    dt_agent_output out, err;
    dt_tail tail;
    dt_rank_diagnosis *diagnosis; /* being made; NULL: none is */
    struct {                      /* heartbeat.c */
        bool asked;               /* where it is, and it has not answered yet */
        int64_t progress;         /* as it last said; -1: it never did */
        bool waiting;             /* ... for other ranks */
    } heartbeat;
} dt_agent_rank;

typedef enum dt_ending_phase {
    DT_ENDING_NO,
    DT_ENDING_TERM,
    DT_ENDING_KILL,
    DT_ENDING_PROOF,
    DT_ENDING_DONE
} dt_ending_phase;

struct dt_agent {
    uv_loop_t loop;
    dt_poll_clock clock;
    const char *folder; /* absolute */
    char *mark;         /* DTRUN_NODE_DIR=folder: in the environment of every process of the run */
    char *run;          /* from the first attach; NULL before */
    int64_t attempt;
    char boot_id[DT_BOOT_ID_SIZE]; /* of this machine, when the agent began */
    dt_journal journal;
    int64_t damaged_told;       /* lines of it, that were said to be damaged */
    bool journal_full;          /* the last write failed, and it was reported */
    double quiet_since_seconds; /* neither ranks nor a supervisor since then */
    double quiet_max_seconds;   /* for so long */

    bool trim_refused; /* by the file system, and it was reported */

    double lease_seconds, lease_grace_seconds; /* lease.c; 0: without end */
    double heard_seconds; /* when the supervisor last said something, by `clock` */

    bool started; /* a `start` was carried out, by this process or the one before it */
    dt_agent_rank *ranks;
    int64_t rank_count;
    int64_t oom_kills; /* that the cgroup counted so far; -1: it does not */
    dt_cgroup cgroup;  /* of the ranks; empty where there is none */
    char **cache_pins; /* marks of what is in use (cache_pins.c) */
    size_t cache_pin_count;
    mode_t ranks_mask; /* umask of the ranks: the one that the agent was started with */

    /* From `start` until the ranks are spawned: GPUs are asked first what they hold (memory.c). */
    bool starting;
    char *engine;
    dt_environment environment;

    dt_devices devices;    /* that the ranks use; count 0: none, or nothing is known */
    char *devices_visible; /* CUDA_VISIBLE_DEVICES of the ranks; NULL: all are */
    char *devices_note;    /* why nothing is proved of them; NULL: it is */
    dt_helper *question;   /* of memory.c, on its way; NULL: none is */
    void (*memory_known)(dt_agent *agent); /* what follows its answer */
    double proof_deadline_seconds;
    json_t *left; /* processes that could not be ended, while the proof is made */

    bool asked;    /* to stop, by a person, and not by the supervisor */
    bool person;   /* ... by a person, of the supervisor */
    bool end_only; /* nobody is served: it leaves when all is ended */
    dt_ending_phase ending;
    double ending_deadline_seconds; /* of TERM, or of KILL */
    const char *ending_reason;      /* "stopped", "peer_failed", "": for the ranks that it ends */

    json_t *offers;  /* rendezvous: name → rank → value */
    json_t *answers; /* rendezvous: name → values */

    dt_listener *listener;
    dt_stream *client;
    double client_seconds; /* when the client last said something, by `clock` */
    bool attached;         /* the client said `attach` */
    int64_t client_offset; /* of the journal: what the client got */
    int64_t acknowledged;

    uv_prepare_t before_wait;
    uv_timer_t alive_timer, ending_timer, diagnosis_timer, proof_timer, cache_pin_timer;
    uv_signal_t child_signal, stop_signals[2], asked_signals[2];
};

#define DT_AGENT_LOG_LINE_BYTES ((size_t)16384)

/* --- serve.c */
dt_status dt_agent_serve(const char *folder, dt_error *err);
/* Nobody is served: it ends all that is left of the ranks in the folder, and returns. asked: by a
 * person. */
dt_status dt_agent_serve_end(const char *folder, bool asked, dt_error *err);

/* --- direct.c: without anybody who supervises */
/* Kills the agent in the folder, ends all that is left of its ranks, and returns. */
dt_status dt_agent_end(const char *folder, bool asked, dt_error *err);
/* Kills commands that a supervisor has left on this node: bridges to the folder (connect; all, or those that are paused by a
 * signal), and other commands of the run that are paused, which do not end with their connection. */
void dt_agent_end_commands(const char *folder, bool paused_only);
/* The agent in the folder ends its ranks as a stop does, or they are ended without it. */
dt_status dt_agent_stop(const char *folder, bool now, dt_error *err);
/* Kills all that carries the mark of the folder, which need not be there. */
dt_status dt_agent_end_marked(const char *folder, dt_error *err);
/* Who has processes here: {folder: {run, attempt, folder, pids}}. New reference, also after an error. */
dt_status dt_agent_list_running(json_t **runs, dt_error *err);
/* A line of JSON for each of them. */
dt_status dt_agent_running(dt_error *err);

/* --- connect.c: the bridge; returns when either side has ended. replace: an agent that holds the
 * lock and hangs is killed first, and the one that is started ends what it finds. */
dt_status dt_agent_connect(const char *folder, bool start, bool replace, dt_error *err);

/* --- folder.c: refuses a link, and what belongs to somebody else; takes everyone else's rights
 * away. check: DT_ERR_NOT_FOUND where there is none. */
dt_status dt_agent_folder_check(const char *folder, dt_error *err);
dt_status dt_agent_folder_make(const char *folder, dt_error *err);

/* --- holder.c: the lock's file names the process that holds it */
dt_status dt_agent_holder_write(int lock, dt_error *err);
dt_status dt_agent_holder_kill(const char *folder, dt_error *err); /* good where none holds it */
/* Whether that agent is stopped by a signal: it obeys nobody. */
bool dt_agent_holder_is_paused(const char *folder);
bool dt_agent_holder_ask(const char *folder,
                         int number);             /* by a signal; false where none holds it */
bool dt_agent_holder_is_here(const char *folder); /* a living process of this machine */

/* --- fence_old_attempts.c: ends what earlier attempts of the run left on this machine */
void dt_agent_fence_old_attempts(const char *folder);

/* --- client.c */
void dt_agent_client_pump(dt_agent *agent); /* sends what of the journal is written and unsent */
void dt_agent_client_send(dt_agent *agent, json_t *message); /* takes; nothing where none listens */
/* for_good: the same command would be refused again. */
void dt_agent_client_refuse(dt_agent *agent, bool for_good, const char *why);
void dt_agent_client_check(dt_agent *agent); /* closes one that nobody has the other end of */
void dt_agent_client_close(dt_agent *agent);

/* --- execute.c: the listener's call; whoever came last is obeyed */
void dt_agent_accept_client(void *context, int connection);

/* --- start.c */
dt_status dt_agent_start(dt_agent *agent, const dt_agent_command *command, dt_error *err);

/* --- memory.c: each calls `known` once it is, at once where there is nothing to ask */
void dt_agent_memory_before(dt_agent *agent, void (*known)(dt_agent *agent));
void dt_agent_memory_after(dt_agent *agent, void (*known)(dt_agent *agent));

/* --- rank.c */
dt_status dt_agent_rank_follow(dt_agent_rank *rank, int channel, int out, int err_fd,
                               dt_error *err);
void dt_agent_rank_not_started(dt_agent_rank *rank, const char *message);
/* Reports everyone that died; `failed` is called after the report of each that failed. */
void dt_agent_ranks_reap(dt_agent *agent, void (*failed)(dt_agent *agent));
void dt_agent_rank_release(dt_agent_rank *rank);
bool dt_agent_ranks_running(const dt_agent *agent);

/* --- log.c */
void dt_agent_rank_log(dt_agent_rank *rank, const char *stream, const char *text); /* clean text */
void dt_agent_say(dt_agent *agent, const char *text); /* a `log` of no rank, and of agent.log */

/* --- rendezvous.c */
void dt_agent_rendezvous_offer(dt_agent_rank *rank, const char *name, const char *value);
dt_status dt_agent_rendezvous_answer(dt_agent *agent, const char *name, json_t *values,
                                     dt_error *err);
void dt_agent_rendezvous_tell_all(dt_agent *agent); /* to a client that just attached */

/* --- diagnose.c */
dt_status dt_agent_diagnose(dt_agent *agent, int64_t rank, dt_error *err); /* -1: all */
void dt_agent_diagnosis_where(dt_agent_rank *rank, const json_t *answer);  /* of the engine */
void dt_agent_diagnosis_end(dt_agent_rank *rank); /* with what is there; good where none is made */

/* --- heartbeat.c: what the supervisor's watchdog goes by */
/* New reference: the `alive` of this moment. Asks the engines for the next one. */
json_t *dt_agent_heartbeat(dt_agent *agent);
void dt_agent_heartbeat_answer(dt_agent_rank *rank, const json_t *where); /* of an engine */

/* --- lease.c */
void dt_agent_lease_begin(dt_agent *agent, const dt_agent_command *start);
void dt_agent_lease_check(dt_agent *agent);

/* --- cache_pins.c */
void dt_agent_cache_pins_take(dt_agent *agent, const dt_agent_command *start);
void dt_agent_cache_pins_release(dt_agent *agent);

/* --- ending.c */
void dt_agent_ending_begin(dt_agent *agent, double grace_seconds, const char *reason);
void dt_agent_end_other_ranks(dt_agent *agent); /* a rank failed, or was not started */
void dt_agent_ending_reap(dt_agent *agent);     /* ranks may have died */
void dt_agent_ending_advance(dt_agent *agent);

/* --- recover.c: fills in what the journal tells, and ends what the agent before left */
typedef struct dt_agent_past dt_agent_past;
dt_agent_past *dt_agent_past_new(void);
void dt_agent_past_free(dt_agent_past *past);
void dt_agent_past_add_event(void *past, const json_t *event); /* a dt_journal_fn */
/* DT_ERR_UNSUPPORTED: another build wrote the journal. */
dt_status dt_agent_past_check(const dt_agent_past *past, dt_error *err);
void dt_agent_recover(dt_agent *agent, const dt_agent_past *past);

static inline void dt_agent_quit(dt_agent *agent)
{
    uv_stop(&agent->loop);
}

#endif
