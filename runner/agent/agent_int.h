/* agent_int: declares what the files of the agent share.
 *
 * One process, one loop, one struct. The files:
 *   serve.c      lock, loop, timers, end of life             folder.c    the folder and the holder of its lock
 *   client.c     what is sent to the supervisor              execute.c   executes the supervisor's commands
 *   connect.c    the bridge of a supervisor; earlier attempts are ended
 *   direct.c     without a supervisor                        recover.c   restart on an existing journal
 *   system.c     what the node is used for, every ten seconds
 *   rank/
 *     start.c    `start`: plan → ranks                       rank.c      a rank's output, its death, times of programs
 *     ending.c   TERM → KILL → released; the lease           diagnose.c  heartbeats, and a hanging rank
 *     helper.c   runs another program; GPU memory
 * Without the loop: command.c journal/ process/ program/ rank/output.c rank/devices.c
 *
 * How the ranks of a node end (ending.c):
 *
 *   NO ── a rank failed, or `stop` ──► TERM ── all gone, or the grace period is over ──► KILL
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

#include "base/json.h"
#include "base/process.h"
#include "runner/agent/command.h"
#include "runner/agent/journal/journal.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"
#include "runner/agent/program/program.h"
#include "runner/agent/rank/devices.h"
#include "runner/agent/rank/output.h"
#include "runner/channel/poll_clock.h"
#include "runner/channel/stream.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"

typedef struct dt_agent dt_agent;
typedef struct dt_rank_diagnosis dt_rank_diagnosis;
typedef struct dt_helper dt_helper;
typedef struct dt_agent_system dt_agent_system;
typedef struct dt_agent_claim dt_agent_claim;

typedef struct dt_agent_output {
    struct dt_agent_rank *rank;
    dt_stream *stream;
    const char *name; /* "stdout", "stderr" */
} dt_agent_output;

typedef struct dt_agent_rank {
    dt_agent *agent;
    int64_t rank, local_rank, threads;
    char device[32];
    int64_t replicas; /* number of its devices, starting at `device` */
    pid_t pid;        /* 0: not started */
    int64_t start_ticks;
    dt_program
        *program; /* of a `command`: its process is the user's program; NULL: it is the engine */
    struct {      /* rank.c: looks at the program's files */
        uv_work_t work;
        bool running;
        void (*done)(struct dt_agent_rank *rank); /* called in the loop */
        double next_seconds;                      /* by the monotonic clock */
    } look;
    int kernel_log; /* kernel log, opened before its start; -1: not readable */
    bool running;   /* started, and not yet seen to have died */
    bool dying;     /* has died; not yet reported */
    bool last_look; /* of a rank that is dying: its files were looked at a last time, or given up */
    bool look_given_up; /* its last look has not returned */
    bool refused;       /* its program cannot be started, which was sent; not yet reported */
    int wait_status;    /* status of waitpid, between its death and its report */
    bool failed_first;  /* reported `failed` for a reason of its own, not because of a peer */
    dt_stream *channel; /* of the engine; NULL: a program has none */
    dt_stream *
        child; /* what a program's process says before it is executed; NULL: it was executed, or ended */
    dt_agent_output out, err;
    dt_tail tail;
    dt_rank_diagnosis *diagnosis; /* diagnosis in progress; NULL: none */
    struct {                      /* diagnose.c */
        bool asked;               /* asked for its progress, and not answered yet */
        int64_t progress;         /* last reported progress; -1: never */
        bool waiting;             /* waits for other ranks */
        int64_t output;           /* pieces of output that arrived */
        pid_t telling; /* process of the program that tells most (describe.h); 0: unknown */
        double cpu_seconds,
            quiet_since_seconds; /* of the program; since then neither it nor output */
        json_t *times;           /* the engine's sums of its stopwatch; NULL: none yet */
        json_t *samples;         /* of a program: how often each state and wait was seen */
    } heartbeat;
    json_t *before; /* what the program did when it was asked to end; NULL: not asked */
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
    char *run;          /* set by the first attach; NULL before */
    int64_t attempt;
    char boot_id[DT_BOOT_ID_SIZE]; /* boot id of this machine when the agent started */
    dt_journal journal;
    int64_t damaged_reported;   /* damaged lines that were reported */
    bool journal_full;          /* the last write failed, and it was reported */
    double quiet_since_seconds; /* since then there are neither ranks nor a supervisor */
    double quiet_max_seconds;   /* exit after this time */

    bool trim_refused; /* refused by the file system, and reported */

    double lease_seconds, lease_grace_seconds; /* ending.c; 0: no limit */
    double heard_seconds; /* time of the supervisor's last command, by `clock` */

    bool started; /* a `start` was executed, by this process or the previous one */
    dt_agent_rank *ranks;
    int64_t rank_count;
    int64_t oom_kills; /* count of the cgroup so far; -1: not counted */
    dt_cgroup cgroup;  /* cgroup of the ranks; empty if there is none */
    char **cache_pins; /* marks of files in use (start.c) */
    size_t cache_pin_count;
    int64_t cache_pin_capacity;
    mode_t ranks_mask; /* umask of the ranks: the one that the agent was started with */

    /* From `start` until the ranks are spawned: the GPUs' memory use is queried first
     * (helper.c). */
    bool starting;
    char *engine;
    dt_environment environment;
    dt_program_plan *programs; /* of a `command`; NULL: the ranks are engines */
    /* reports ranks that have ended, and ends the others (ending.c); for files that ending.c calls */
    void (*ranks_changed)(dt_agent *agent);

    dt_devices devices; /* GPUs that the ranks use; count 0: none, or unknown */
    char gpu_uuids[DT_CLAIM_GPUS_MOST][DT_CLAIM_KEY_SIZE]; /* by cuda:N; "": unknown */
    char *owner;            /* of the launch (gpu_claims.h); "" : shares no GPU */
    dt_agent_claim *claims; /* GPUs that the ranks hold (claims.c) */
    int64_t claim_count, claimed_ms;
    char *devices_visible; /* CUDA_VISIBLE_DEVICES of the ranks; NULL: all GPUs */
    char *devices_note;    /* why their memory use cannot be verified; NULL: it can */
    dt_helper *question;   /* running query of helper.c; NULL: none */
    void (*memory_known)(dt_agent *agent); /* called after its answer */
    double proof_deadline_seconds;
    json_t *left; /* processes that could not be killed, while GPUs are checked */

    bool asked;    /* a person stopped it directly, not through the supervisor */
    bool person;   /* a person asked the supervisor for the stop */
    bool end_only; /* serves no supervisor: exits when everything has ended */
    dt_ending_phase ending;
    double ending_deadline_seconds; /* deadline of TERM or KILL */
    /* "stopped", "peer_failed" or "": reason for the ranks that are ended */
    const char *ending_reason;

    dt_agent_system
        *system; /* system.c; NULL: the recipe does not want it, or the ranks have ended */

    json_t *offers;  /* rendezvous: name → rank → value */
    json_t *answers; /* rendezvous: name → values */

    dt_listener *listener;
    dt_stream *client;
    double client_seconds; /* time of the client's last line, by `clock` */
    bool attached;         /* the client has sent `attach` */
    int64_t client_offset; /* offset in the journal up to which the client was sent */
    int64_t acknowledged;

    uv_prepare_t before_wait;
    uv_timer_t alive_timer, ending_timer, diagnosis_timer, proof_timer, cache_pin_timer,
        output_timer, program_timer, sample_timer, system_timer;
    uv_signal_t child_signal, stop_signals[2], asked_signals[2];
};

#define DT_AGENT_LOG_LINE_BYTES ((size_t)16384)

/* --- serve.c */
dt_status dt_agent_serve(const char *folder, dt_error *err);
/* Ends everything that is left of the ranks in the folder, without serving a supervisor. asked:
 * by a person. */
dt_status dt_agent_serve_end(const char *folder, bool asked, dt_error *err);

/* --- direct.c, folder.c: without a supervisor */
/* Kills the agent in the folder and ends everything that is left of its ranks. */
dt_status dt_agent_end(const char *folder, bool asked, dt_error *err);
/* Kills commands that a supervisor left on this node: bridges to the folder (connect; all, or
 * only those that are paused by a signal), and other paused commands of the run, which do not
 * end with their connection. */
void dt_agent_end_commands(const char *folder, bool paused_only);
/* Lets the agent in the folder end its ranks as a stop does; if it does not, they are ended
 * without it. */
dt_status dt_agent_stop(const char *folder, bool now, dt_error *err);
/* Kills all processes with the mark of the folder, which need not exist. */
dt_status dt_agent_end_marked(const char *folder, dt_error *err);
/* Lists the runs that have processes here: {folder: {run, attempt, folder, pids}}. New
 * reference, also after an error. */
dt_status dt_agent_list_running(json_t **runs, dt_error *err);
/* Prints a line of JSON for each of them. */
dt_status dt_agent_running(dt_error *err);

/* --- connect.c: the bridge; returns when either side has ended. replace: kill an agent that
 * holds the lock and hangs; the agent that is then started ends what it finds. */
dt_status dt_agent_connect(const char *folder, bool start, bool replace, dt_error *err);

/* --- folder.c: refuses a link and a folder of another user, and removes the rights of all
 * others. check: DT_ERR_NOT_FOUND if there is no folder. */
dt_status dt_agent_folder_check(const char *folder, dt_error *err);
dt_status dt_agent_folder_make(const char *folder, dt_error *err);

/* --- folder.c: the lock file names the process that holds it */
dt_status dt_agent_holder_write(int lock, dt_error *err);
dt_status dt_agent_holder_kill(const char *folder, dt_error *err); /* DT_OK if nobody holds it */
/* True if that agent is stopped by a signal and reacts to nothing. */
bool dt_agent_holder_is_paused(const char *folder);
bool dt_agent_holder_ask(const char *folder,
                         int number);             /* sends a signal; false if nobody holds it */
bool dt_agent_holder_is_here(const char *folder); /* held by a running process of this machine */

/* --- client.c */
/* sends journal lines that are written but not sent yet */
void dt_agent_client_pump(dt_agent *agent);
/* takes `message`; dropped if no client is attached */
void dt_agent_client_send(dt_agent *agent, json_t *message);
/* for_good: a retry of the command would be refused too. */
void dt_agent_client_refuse(dt_agent *agent, bool for_good, const char *why);
void dt_agent_client_check(dt_agent *agent); /* closes a connection that seems dead */
void dt_agent_client_close(dt_agent *agent);

/* --- execute.c: callback of the listener; a newer connection replaces the current one */
void dt_agent_accept_client(void *context, int connection);

/* --- start.c */
dt_status dt_agent_start(dt_agent *agent, const dt_agent_command *command, dt_error *err);
/* Starts the programs of a command: all ranks have met. */
void dt_agent_start_programs(dt_agent *agent, const json_t *values);

/* --- helper.c: runs a program of the node (gdb, nvidia-smi) and collects its output, with limits on time and size. It
 * frees itself after `done` or cancel */
/* text: its cleaned stdout and stderr; problem: why it was killed, or NULL. */
typedef void dt_helper_fn(void *context, const char *text, const char *problem);

/* Searches argv[0] in PATH. DT_ERR_NOT_FOUND if this node has no such program; `done` is called
 * later, once, unless cancelled. */
dt_status dt_helper_start(dt_helper **out, dt_agent *agent, const char *const *argv,
                          double timeout_seconds, dt_helper_fn *done, void *context, dt_error *err);
/* The same without a limit of time: `line` gets each line, and `done` is called with "" when the program has ended. */
typedef void dt_helper_line_fn(void *context, const char *line);
dt_status dt_helper_follow(dt_helper **out, dt_agent *agent, const char *const *argv,
                           dt_helper_line_fn *line, dt_helper_fn *done, void *context,
                           dt_error *err);
void dt_helper_cancel(dt_helper *helper); /* accepts NULL */

/* Each calls `known` when the GPUs' memory use is known, at once if there is nothing to query. */
void dt_agent_memory_before(dt_agent *agent, void (*known)(dt_agent *agent));
void dt_agent_memory_after(dt_agent *agent, void (*known)(dt_agent *agent));

/* --- system.c: a `system` event every ten seconds while the ranks run */
/* Begins, unless the plan's recipe has `log.system: false`. */
void dt_agent_system_begin(dt_agent *agent, const json_t *plan);
/* Also records the GPUs of the ranks, which are known by now (helper.c). */
void dt_agent_system_watch_gpus(dt_agent *agent);
void dt_agent_system_end(dt_agent *agent);

/* --- claims.c */
/* Keeps the UUIDs of all visible GPUs, which agent->devices has now. */
void dt_agent_claims_name(dt_agent *agent);
/* Claims the GPUs of all ranks; false: GPU *gpu is the holder's, and none is claimed. */
bool dt_agent_claims_take(dt_agent *agent, dt_claim_holder *holder, int64_t *gpu);
void dt_agent_claims_release(dt_agent *agent);
/* Returns how many descriptors the processes of the rank keep, and lists them. */
size_t dt_agent_claims_of(int fds[DT_CLAIM_GPUS_MOST], const dt_agent_rank *rank);

/* --- rank.c */
dt_status dt_agent_rank_follow(dt_agent_rank *rank, int channel, int out, int err_fd,
                               dt_error *err);
/* Of a program: `child` is what its process says before it is executed. */
dt_status dt_agent_rank_follow_program(dt_agent_rank *rank, int child, int out, int err_fd,
                                       dt_error *err);
void dt_agent_rank_not_started(dt_agent_rank *rank, const char *message);
/* Not started because GPU `gpu` is used by `who`. */
void dt_agent_rank_refused(dt_agent_rank *rank, int64_t gpu, const char *who);
/* Reports each rank that died; `failed` is called after the report of a failure. */
void dt_agent_ranks_reap(dt_agent *agent, void (*failed)(dt_agent *agent));
/* Reports ranks that have died without waiting for looks at their files. */
void dt_agent_looks_give_up(dt_agent *agent, void (*failed)(dt_agent *agent));
void dt_agent_rank_release(dt_agent_rank *rank);
bool dt_agent_ranks_running(const dt_agent *agent);

/* --- rank.c: what a program needs from time to time; its files are read in a thread */
/* Looks at the files of the rank's program; done: called afterwards, in the loop. One look at a time. */
void dt_agent_look(dt_agent_rank *rank, void (*done)(dt_agent_rank *rank));
/* Sets the timer for the next thing that a program needs. */
void dt_agent_programs_plan(dt_agent *agent);

/* --- client.c: the run's log */
/* text must be clean (output.h) */
void dt_agent_rank_log(dt_agent_rank *rank, const char *stream, const char *text);
/* a `log` event without a rank, and a line of agent.log */
void dt_agent_log(dt_agent *agent, const char *text);

/* --- client.c: values that ranks exchange */
void dt_agent_rendezvous_offer(dt_agent_rank *rank, const char *name, const char *value);
dt_status dt_agent_rendezvous_answer(dt_agent *agent, const char *name, json_t *values,
                                     dt_error *err);
void dt_agent_rendezvous_send_all(dt_agent *agent); /* to a client that just attached */

/* --- diagnose.c */
dt_status dt_agent_diagnose(dt_agent *agent, int64_t rank, dt_error *err); /* -1: all */
/* answer of the engine */
void dt_agent_diagnosis_where(dt_agent_rank *rank, const json_t *answer);
/* ends a diagnosis with what is known; does nothing if there is none */
void dt_agent_diagnosis_end(dt_agent_rank *rank);

/* --- diagnose.c: facts for the supervisor's watchdog */
/* Returns the current `alive` message, a new reference. Asks the engines for the next one. */
json_t *dt_agent_heartbeat(dt_agent *agent);
/* Returns what the program of the rank does: new reference (describe.h), and "quiet_seconds". */
json_t *dt_agent_program_describe(const dt_agent_rank *rank);
void dt_agent_heartbeat_answer(dt_agent_rank *rank, const json_t *where); /* of an engine */

/* --- ending.c: the lease */
void dt_agent_lease_begin(dt_agent *agent, const dt_agent_command *start);
void dt_agent_lease_check(dt_agent *agent);

/* --- start.c: files in use */
void dt_agent_cache_pins_take(dt_agent *agent, const dt_agent_command *start);
void dt_agent_cache_pins_release(dt_agent *agent);

/* --- ending.c */
void dt_agent_ending_begin(dt_agent *agent, double grace_seconds, const char *reason);
void dt_agent_end_other_ranks(dt_agent *agent); /* because a rank failed or was not started */
void dt_agent_ending_reap(dt_agent *agent);     /* call when ranks may have died */
void dt_agent_ending_advance(dt_agent *agent);

/* --- recover.c: restores the state from the journal, and ends what the previous agent left */
typedef struct dt_agent_past dt_agent_past;
dt_agent_past *dt_agent_past_new(void);
void dt_agent_past_free(dt_agent_past *past);
void dt_agent_past_add_event(void *past, const json_t *event); /* a dt_journal_fn */
/* DT_ERR_UNSUPPORTED: another version of the agent wrote the journal. */
dt_status dt_agent_past_check(const dt_agent_past *past, dt_error *err);
void dt_agent_recover(dt_agent *agent, const dt_agent_past *past);

static inline void dt_agent_quit(dt_agent *agent)
{
    uv_stop(&agent->loop);
}

#endif
