/* verdict: how the attempt ended, from what its nodes told.
 *
 * It is a fold: every event that matters is seen once, in any order of nodes, and the same events
 * read again from the store give the same verdict. The first cause of a failure is the earliest
 * death that no other death explains: a rank that lost its peer, or that was told to end because
 * of one, is a consequence.
 *
 * Ownership  copies what it keeps
 */
#ifndef DT_POLICY_VERDICT_H
#define DT_POLICY_VERDICT_H

#include "base/exit.h"
#include "base/strbuf.h"
#include "runner/supervisor/protocol/message.h"
#include "store/store.h"

/* The smaller, the more likely the first cause. */
typedef enum dt_cause {
    DT_CAUSE_OWN,   /* of its own: killed, failed, not started, agent lost */
    DT_CAUSE_PEER,  /* said that a peer was lost */
    DT_CAUSE_ENDED, /* ended by its agent, for another rank or a stop */
    DT_CAUSE_NONE
} dt_cause;

typedef struct dt_verdict {
    bool stop_asked;
    bool stop_now;       /* ... without time to save: dtrun stop --now */
    bool asked_there;    /* ... on a node, past the supervisor */
    bool ended_by_us;    /* a supervisor had the ranks ended, and no person had asked for it */
    bool finished;       /* rank 0 said so */
    bool finished_steps; /* and that it was because all steps are done */
    dt_cause cause;      /* of the failure below */
    int64_t cause_time_ms;
    int exit_code;       /* that this cause means */
    dt_strbuf reason;    /* in words */
    bool hung;           /* no step was made any more */
    bool launcher_lost;  /* an agent stopped its ranks, as the recipe asks */
    bool time_limit;     /* the ranks ended because the recipe gives no more time */
    bool unrecoverable;  /* another try would end the same way */
    dt_strbuf left;      /* processes that could not be removed, "" none */
    dt_strbuf unreached; /* nodes where a stop could not be proved, "" none */
    char **rank_failed;  /* [world_size] "status\0message" of a rank's `failed`, or NULL */
    int64_t world_size;
} dt_verdict;

dt_status dt_verdict_init(dt_verdict *verdict, int64_t world_size, dt_error *err);
void dt_verdict_release(dt_verdict *verdict); /* accepts one of zero bytes */

/* An event of the node named so. */
void dt_verdict_see(dt_verdict *verdict, const dt_message *message, const char *node);
/* The node, or the system, failed without a word from a rank. */
void dt_verdict_system_failed(dt_verdict *verdict, const char *reason, int64_t time_ms);

/* The ranks made no step any more; time_ms is of the last sign of one. */
void dt_verdict_hung(dt_verdict *verdict, const char *reason, int64_t time_ms);
/* A stop was asked for, and this node cannot be asked whether anything is left. */
void dt_verdict_unreached(dt_verdict *verdict, const char *what);

bool dt_verdict_has_failed(const dt_verdict *verdict);
/* Parts of a reason; what follows names the nodes, up to the end of the reason. */
#define DT_REASON_LEFT    "not released: "
#define DT_REASON_UNKNOWN "cannot verify that nothing is left: "
#define DT_REASON_PROVED  "nothing is left on its nodes (verified later)"

/* A supervisor had the ranks ended for a failure that it has noted nowhere that is still there: they
 * ended well, and only the agents' journals tell that it was not by a signal from elsewhere. */
bool dt_verdict_has_lost_cause(const dt_verdict *verdict);
/* What was told says how the ranks ended, whatever else is missing. */
bool dt_verdict_is_explained(const dt_verdict *verdict);
/* Once nothing more can come: failed of something that may go better the next time. Not a recipe
 * that cannot work, a training that diverged, a program that cannot be run; and not while
 * processes are left that hold what the next try needs. */
bool dt_verdict_may_restart(const dt_verdict *verdict);
/* Once nothing more can come. *reason is borrowed from the verdict. */
void dt_verdict_give(dt_verdict *verdict, dt_run_state *state, int *exit_code, const char **reason);

#endif
