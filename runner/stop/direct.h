/* direct: stops a run without its history and without its supervisor.
 *
 * It needs the folder of the run, which says where its agents are, or the name of a node, whose process table
 * shows which runs have processes there. Each agent is asked by one command over the transport (agent/direct.c),
 * and verifies that nothing is left before it answers. `dtrun stop` without history (of one run, of several, of a
 * node), the end of what a run has left, and the checks of launch and doctor all ask through dt_direct_ask.
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
    DT_DIRECT_ALL,  /* kills agents too, and loses what they could not write */
    DT_DIRECT_LIST, /* ends nothing */
} dt_direct_how;

/* One question to a node, and its answer. */
typedef struct dt_direct_place {
    const char *node;
    /* Path on the node; NULL: dt_direct_ask sets it to the agent of this dtrun, which it copies there if it is missing. */
    const char *agent;
    const char *folder; /* everything that belongs to it there is ended; NULL with DT_DIRECT_LIST */
    double grace_seconds; /* of the recipe, with DT_DIRECT_GRACE; negative: the plan there has it */
    const char *doubt;    /* a problem that stays even if the node did its part; NULL: none */
    const char *problem;  /* why the node did not do it, or could not verify it; NULL: it did */
    bool stays;      /* the agent itself still runs, without a rank (only with DT_DIRECT_GRACE) */
    json_t *running; /* DT_DIRECT_LIST: [{run, attempt, folder, pids}], new reference; else NULL */
} dt_direct_place;

/* Asks all places at once, each with a time limit, and verifies that nothing is left there. A node whose new commands
 * hang delays no other. teller: begins the lines that name the nodes that have not answered yet, for example "dtrun
 * stop"; NULL: no such lines. Ctrl-C ends the wait if dt_interrupt_catch was called. */
void dt_direct_ask(dt_direct_place *places, int64_t count, dt_direct_how how, const char *teller,
                   dt_arena *arena);

/* Lists the places that the folder of the run names, one for each node of each attempt. A node that the folder does not
 * name is this machine. *named: number of places that are named. */
dt_status dt_direct_places(dt_direct_place **places, int64_t *count, int64_t *named,
                           const char *run, dt_arena *arena, dt_error *err);

/* Appends "NODE: PROBLEM; ..." for the places with a problem, each text once. */
void dt_direct_add_left(dt_strbuf *left, const dt_direct_place *places, int64_t count);

/* Picks the run in `runs` whose id is `ref`, or whose id alone begins with it. *run is borrowed
 * from `runs`; NULL if there is none. DT_ERR_USAGE if `ref` is empty, or begins several ids,
 * which the message lists. */
dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err);

#endif
