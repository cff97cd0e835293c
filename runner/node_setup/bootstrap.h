/* bootstrap: copies dtrun-agent to a node that has nothing of dtrun, and probes the node with it.
 *
 * Copying needs only a POSIX sh, cat, mkdir, chmod, mv and wc on the node. The agent is static and goes to
 * CACHE/agents/HASH; it does all further work on the node (remote_helper/remote_helper.h).
 *
 * Ownership  strings live in the arena, documents are the caller's
 * Threads    any
 * Errors     node_setup.h's
 */
#ifndef DT_RUNNER_NODE_SETUP_BOOTSTRAP_H
#define DT_RUNNER_NODE_SETUP_BOOTSTRAP_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/checkpoint/digest.h"

/* The agent of this installation. */
typedef struct dt_bootstrap {
    const char *path; /* on this machine */
    char digest[DT_DIGEST_SIZE];
    dt_strbuf bytes;
    const char *seen; /* file that probes look for, as "sees"; NULL: none */
} dt_bootstrap;

dt_status dt_bootstrap_init(dt_bootstrap *out, dt_arena *arena, dt_error *err);
void dt_bootstrap_release(dt_bootstrap *bootstrap); /* accepts a zeroed struct */

/* Returns the object of remote_helper/probe.c for the node; copies the agent first if it is missing. *skew_ms: the node's
 * clock minus this machine's, within the time of the answer. bundle: "-" for none. */
dt_status dt_bootstrap_probe(json_t **facts, int64_t *skew_ms, const dt_bootstrap *bootstrap,
                             const char *node, const char *bundle, const atomic_bool *cancelled,
                             dt_error *err);

/* Returns the path of the agent on the node with these facts. */
dt_status dt_bootstrap_agent(const char **path, const dt_bootstrap *bootstrap, const char *node,
                             const json_t *facts, dt_arena *arena, dt_error *err);

#endif
