/* transport: how a node is reached: "the argv that gives me stdin and stdout on that node".
 *
 * What runs there is always `dtrun-agent connect FOLDER --start [--replace]`; the protocol on its
 * stdin and stdout is the same, whatever carries it. Adding a transport: a file with one struct, a
 * line in the table of transport.c.
 *
 * Ownership  everything returned lives in the arena that is passed
 */
#ifndef DT_RUNNER_TRANSPORT_H
#define DT_RUNNER_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_transport_target {
    const char *node; /* as the recipe names it */
    const char *run;
    int64_t attempt, node_index;
    const char *here; /* a folder on the launch machine that belongs to this target alone */
    bool replace;     /* an agent that hangs there is killed first: its ranks die with it */
} dt_transport_target;

typedef struct dt_transport {
    const char *kind;
    bool (*reaches)(const char *node); /* MUST: whether this transport is for that node */
    /* MUST: ended by NULL; argv[0] is a path */
    dt_status (*command)(const char ***argv, const dt_transport_target *target, dt_arena *arena,
                         dt_error *err);
    /* MUST: the engine's path on the node */
    dt_status (*engine)(const char **path, const dt_transport_target *target, dt_arena *arena,
                        dt_error *err);
} dt_transport;

extern const dt_transport dt_transport_local;

/* DT_ERR_UNSUPPORTED, naming the node, where none reaches it. */
dt_status dt_transport_find(const dt_transport **out, const char *node, dt_error *err);

#endif
