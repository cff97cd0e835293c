/* direct: a run is stopped without its history, and without its supervisor.
 *
 * What is needed is the folder of the run, which says where its agents are, or the name of a node:
 * its process table says which runs have something there. Agents are asked over the transport, one
 * command each (agent/direct.c); each proves that nothing is left before it says so.
 *
 * Ownership  strings live in the arena
 */
#ifndef DT_RUNNER_STOP_DIRECT_H
#define DT_RUNNER_STOP_DIRECT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/* The run whose folder `ref` names, as dt_store_run_find does: an id, "last", a name (its newest
 * run), or a unique prefix. DT_ERR_NOT_FOUND. */
dt_status dt_direct_find(const char **run, const char *ref, dt_arena *arena, dt_error *err);

typedef enum dt_direct_how {
    DT_DIRECT_GRACE, /* as `dtrun stop` */
    DT_DIRECT_NOW, /* the ranks are killed; agents stay while a supervisor has them, or their journal is unwritten */
    DT_DIRECT_ALL, /* agents too, with what they could not write */
} dt_direct_how;

typedef struct dt_direct_seen {
    int64_t asked; /* nodes that there were */
    int64_t stays; /* DT_DIRECT_GRACE: agents that are still there, without a rank */
} dt_direct_seen;

/* Ends what the run has on the nodes that its folder names; `left` gets those where it is not proved,
 * and why. */
dt_status dt_direct_stop(dt_direct_seen *seen, dt_strbuf *left, const char *run, dt_direct_how how,
                         dt_arena *arena, dt_error *err);

/* Where our agent is on the node; it is put there first where it is not. */
dt_status dt_direct_agent(const char **agent, const char *node, dt_arena *arena, dt_error *err);
/* What runs there: [{run, attempt, folder, pids}], as `dtrun-agent running` says. New reference. */
dt_status dt_direct_running(json_t **runs, const char *agent, const char *node, dt_arena *arena,
                            dt_error *err);
/* Of what runs there: the run whose id `ref` is, or alone begins. *run is borrowed from `runs`; NULL: there
 * is none. DT_ERR_USAGE where `ref` is empty, or begins several: the message lists them. */
dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err);
/* Ends what is in that folder there; *problem: why it is not done, NULL where it is. *stays: the agent itself
 * is still there (known where `now` is not). */
dt_status dt_direct_end(const char **problem, const char *agent, const char *node,
                        const char *folder, bool now, bool *stays, dt_arena *arena, dt_error *err);
/* The agent too. */
dt_status dt_direct_end_agent(const char **problem, const char *agent, const char *node,
                              const char *folder, dt_arena *arena, dt_error *err);

#endif
