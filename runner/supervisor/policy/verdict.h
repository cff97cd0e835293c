/* verdict: derives how an attempt ended from the events of its nodes.
 *
 * It is a fold: every relevant event is added once, in any order of nodes, and the same events read again
 * from the store give the same verdict. The first cause of a failure is the earliest death that no other
 * death explains: a rank that lost its peer, or was ended because of a peer, is a consequence.
 *
 * Ownership  copies what it keeps
 */
#ifndef DT_POLICY_VERDICT_H
#define DT_POLICY_VERDICT_H

#include "base/process.h"
#include "base/strbuf.h"
#include "runner/supervisor/protocol/message.h"
#include "store/run.h"

/* Ordered: a smaller value is more likely the first cause. */
typedef enum dt_cause {
    DT_CAUSE_OWN,   /* the rank's own: killed, failed, not started, agent died */
    DT_CAUSE_PEER,  /* the rank reported that a peer was lost */
    DT_CAUSE_ENDED, /* ended by its agent, because of another rank or a stop */
    DT_CAUSE_NONE
} dt_cause;

typedef struct dt_verdict {
    bool stop_asked;
    bool stop_now;       /* stop without grace period: dtrun stop --now */
    bool asked_there;    /* stop requested on a node, not through the supervisor */
    bool ended_by_us;    /* a supervisor ended the ranks although nobody requested it */
    bool finished;       /* rank 0 reported the end of training */
    bool finished_steps; /* because all steps are done */
    dt_strbuf warning;   /* warning of rank 0 about its good end; "": none */
    dt_cause cause;      /* cause of the failure */
    int64_t cause_time_ms;
    dt_strbuf
        early; /* "rank 1 on a ended with code 0": the first that did so without being asked; "": none */
    int64_t early_ms;
    dt_strbuf signalled; /* "rank 1 on a": the first that reported a signal to stop; "": none */
    int64_t signalled_count;
    dt_strbuf peer;     /* what the program of a rank did that others waited for; "": unknown */
    int peer_suspicion; /* suspicion of `peer`, as in runner/agent/process/describe.h */
    double peer_quiet_seconds;
    int exit_code;       /* exit code of this cause */
    dt_strbuf reason;    /* text of the reason */
    bool hung;           /* the ranks hung */
    bool launcher_lost;  /* an agent stopped its ranks because of failure.launcher_lost */
    bool time_limit;     /* the ranks ended because time_limit was reached */
    bool unrecoverable;  /* a restart would fail the same way */
    bool claimed;        /* a run of somebody else has a GPU of the ranks */
    bool untried;        /* the same, unless an earlier attempt of the run has trained here */
    dt_strbuf left;      /* processes and memory that are left, "" if none */
    dt_strbuf unreached; /* nodes where processes may be left, "" if none */
    char **rank_failed;  /* [world_size] "status\0message" of the rank's `failed` event, or NULL */
    int64_t world_size;
} dt_verdict;

void dt_verdict_init(dt_verdict *verdict, int64_t world_size);
void dt_verdict_release(dt_verdict *verdict); /* accepts a zeroed struct */

/* Adds an event; `node` is the name of its node. */
void dt_verdict_see(dt_verdict *verdict, const dt_message *message, const char *node);
/* Adds a failure of a node or of the system that no rank reported. */
void dt_verdict_system_failed(dt_verdict *verdict, const char *reason, int64_t time_ms);

/* Adds a hang; time_ms is the time of the last sign of progress. */
void dt_verdict_hung(dt_verdict *verdict, const char *reason, int64_t time_ms);
/* Adds a node (`what` names it and the problem) that could not confirm that nothing is left. */
void dt_verdict_unreached(dt_verdict *verdict, const char *what);

bool dt_verdict_has_failed(const dt_verdict *verdict);
/* Parts of a reason; the names of nodes follow, up to the end of the reason. */
#define DT_REASON_LEFT    "not released: "
#define DT_REASON_UNKNOWN "cannot verify that nothing is left: "
#define DT_REASON_PROVED  "nothing is left on its nodes (verified later)"

/* True if a supervisor ended the ranks because of a failure whose record is lost: the ranks
 * ended well, and only the agents' journals show that dtrun sent the signal. */
bool dt_verdict_has_lost_cause(const dt_verdict *verdict);
/* True if the events explain how the ranks ended. */
bool dt_verdict_is_explained(const dt_verdict *verdict);
/* True if the attempt failed in a way that a restart may fix. Not for a recipe that cannot work or
 * a training that diverged, and not while processes are left that hold resources. A program that
 * cannot be run, or a device that is missing, is retried only if `worked`: an earlier attempt has
 * trained, so the node lacks processes, memory or a driver for a moment. Call once all events are
 * known. */
bool dt_verdict_may_restart(const dt_verdict *verdict, bool worked);
/* Gives the final state, exit code and reason. Call once all events are known. *reason is
 * borrowed from the verdict. */
void dt_verdict_give(dt_verdict *verdict, dt_run_state *state, int *exit_code, const char **reason);

#endif
