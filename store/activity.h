/* activity: derives from the rows of a run, as words, what it is doing now; used by every list, view and page.
 *
 * Ownership  strings are static, or live in the caller's arena
 */
#ifndef DT_STORE_ACTIVITY_H
#define DT_STORE_ACTIVITY_H

#include "store/event.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prefix of the state of a node that does not answer; a reason in parentheses may follow. */
#define DT_NODE_NOT_REACHABLE "not reachable"
/* Events of a supervisor that ends the ranks after a failure; `restarting` if another attempt follows. */
#define DT_EVENT_RESTARTING "restarting"
#define DT_EVENT_FAILING    "failing"

typedef struct dt_activity {
    const char *words;  /* the name of the state, or "waiting for gpu-b", "restarting", "failing" */
    const char *ready;  /* what a rank in state "ready" does: "training", "waiting" ... */
    const char *failed; /* words for a rank in state "failed": "stopped" if a stop was requested */
    int64_t missing;    /* number of nodes that the run waits for */
    bool steps; /* the run makes steps: its newest speed is current, time left can be predicted */
} dt_activity;
typedef struct dt_activity_facts {
    const dt_run *run;
    const dt_node *nodes; /* of its newest attempt */
    int64_t nodes_count;
    const char *ending; /* DT_EVENT_RESTARTING, DT_EVENT_FAILING or "" */
    int64_t silent_ms,
        usual_ms; /* since the newest point of progress; between the last two points */
} dt_activity_facts;
bool dt_node_is_away(const dt_node *node);

/* True if the newest loss is not a number or infinite (the validation loss, if there is no loss). */
bool dt_run_has_diverged(const dt_run *run);
/* The state of a run for people: a finished run that has diverged is "diverged". */
const char *dt_run_state_word(const dt_run *run);

/* The curve that shows a run's progress: the rate of lines of a run that processes lines, else the loss. */
dt_status dt_progress_curve(const char **out, dt_store *store, const dt_run *run, dt_error *err);

/* The newest two points of this curve that the newest attempt itself recorded: without points of earlier
 * attempts, which a resume from an earlier step undid, and without points that a fork copied from its
 * parent. */
typedef struct dt_last_points {
    int64_t count;               /* 0 to 2 */
    int64_t step[2], time_ms[2]; /* the newest first; 0 beyond count */
    const char *curve;           /* of dt_progress_curve */
    double value;                /* of the newest point; NaN: none */
} dt_last_points;
dt_status dt_last_points_read(dt_last_points *out, dt_store *store, const dt_run *run,
                              dt_error *err);
/* A pure function. While points come in, a node that does not answer does not count as stopped: its ranks may still be
 * connected to the others. */
void dt_activity_of(dt_activity *out, const dt_activity_facts *facts, dt_arena *arena);
dt_status dt_activity_read(dt_activity *out, dt_store *store, const dt_run *run, int64_t now_ms,
                           dt_arena *arena, dt_error *err);
/* Returns the state of a rank for display: "training", "not responding", "failed" ... */
const char *dt_activity_of_rank(const dt_activity *activity, const dt_node *node,
                                const dt_rank *rank);

#ifdef __cplusplus
}
#endif
#endif
