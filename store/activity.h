/* activity: says what a run does at the moment, in words, from its rows: one answer for every list, view and page.
 *
 * Ownership  strings are static, or live in the arena that is passed
 */
#ifndef DT_STORE_ACTIVITY_H
#define DT_STORE_ACTIVITY_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a node that does not answer begins so; a reason in parentheses may follow. */
#define DT_NODE_NOT_REACHABLE "not reachable"
/* Events of a supervisor that ends the ranks because of a failure: whether another attempt follows. */
#define DT_EVENT_RESTARTING "restarting"
#define DT_EVENT_FAILING    "failing"

typedef struct dt_activity {
    const char *words; /* the name of the state, or "waiting for gpu-b", "restarting", "failing" */
    const char *ready; /* what a rank in state "ready" does: "training", "waiting" ... */
    const char
        *failed;     /* what became of a rank in state "failed": "stopped" if that was asked for */
    int64_t missing; /* nodes that the run waits for */
    bool steps;      /* steps come in: the newest speed still holds, and time left can be told */
} dt_activity;
typedef struct dt_activity_facts {
    const dt_run *run;
    const dt_node *nodes; /* of its newest attempt */
    int64_t nodes_count;
    const char *ending;          /* the kind of the event above; "": there is none */
    int64_t silent_ms, usual_ms; /* since the newest point of the loss; between the last two */
} dt_activity_facts;
bool dt_node_is_away(const dt_node *node);
/* A pure function. A node that does not answer stops nobody as long as points come in: its ranks may be
 * heard by the others. */
dt_status dt_activity_of(dt_activity *out, const dt_activity_facts *facts, dt_arena *arena,
                         dt_error *err);
dt_status dt_activity_read(dt_activity *out, dt_store *store, const dt_run *run, int64_t now_ms,
                           dt_arena *arena, dt_error *err);
/* The rank's state as a person reads it: "training", "not responding", "failed" ... */
const char *dt_activity_of_rank(const dt_activity *activity, const dt_node *node,
                                const dt_rank *rank);

#ifdef __cplusplus
}
#endif
#endif
