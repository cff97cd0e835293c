/* direct: stops a run without its history and without its supervisor.
 *
 * It needs the folder of the run, which says where its agents are, or the name of a node, whose process table
 * shows which runs have processes there. Each agent is asked by one command over the transport (agent/direct.c),
 * and verifies that nothing is left before it answers.
 *
 * Ownership  strings live in the arena
 */
#ifndef DT_RUNNER_STOP_DIRECT_H
#define DT_RUNNER_STOP_DIRECT_H

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* Finds the run whose folder `ref` names, like dt_store_run_find: an id, "last", a name (its
 * newest run), or a unique prefix. DT_ERR_NOT_FOUND. */
dt_status dt_direct_find(const char **run, const char *ref, dt_arena *arena, dt_error *err);

typedef enum dt_direct_how {
    DT_DIRECT_GRACE, /* with the grace period, as `dtrun stop` */
    /* kills the ranks; an agent stays if a supervisor uses it or its journal is not written */
    DT_DIRECT_NOW,
    DT_DIRECT_ALL, /* kills agents too, and loses what they could not write */
} dt_direct_how;

typedef struct dt_direct_seen {
    int64_t asked; /* nodes that were asked */
    int64_t stays; /* DT_DIRECT_GRACE: agents that still run, without a rank */
} dt_direct_seen;

/* Ends what the run has on the nodes that its folder names; appends to `left` the nodes where
 * that could not be verified, and why. */
dt_status dt_direct_stop(dt_direct_seen *seen, dt_strbuf *left, const char *run, dt_direct_how how,
                         dt_arena *arena, dt_error *err);

/* Returns the path of this dtrun's agent on the node; copies it there if it is missing. */
dt_status dt_direct_agent(const char **agent, const char *node, dt_arena *arena, dt_error *err);
/* Returns what runs on the node: [{run, attempt, folder, pids}], as from `dtrun-agent running`.
 * New reference. */
dt_status dt_direct_running(json_t **runs, const char *agent, const char *node, dt_arena *arena,
                            dt_error *err);
/* Picks the run in `runs` whose id is `ref`, or whose id alone begins with it. *run is borrowed
 * from `runs`; NULL if there is none. DT_ERR_USAGE if `ref` is empty, or begins several ids,
 * which the message lists. */
dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err);
/* Ends what belongs to the folder on the node; *problem: why that failed, or NULL. *stays: the
 * agent itself still runs (known unless `now`). */
dt_status dt_direct_end(const char **problem, const char *agent, const char *node,
                        const char *folder, bool now, bool *stays, dt_arena *arena, dt_error *err);

#endif
