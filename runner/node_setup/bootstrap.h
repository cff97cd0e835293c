/* bootstrap: dtrun-agent on a node that has nothing of ours, and what it tells of that node.
 *
 * With a POSIX sh, cat, mkdir, chmod, mv and wc on the node the agent, which is static, is put to
 * CACHE/agents/HASH; the rest is done by it (remote_helper/remote_helper.h).
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

/* The agent that is installed beside us. */
typedef struct dt_bootstrap {
    const char *path; /* here */
    char digest[DT_DIGEST_SIZE];
    dt_strbuf bytes;
} dt_bootstrap;

dt_status dt_bootstrap_init(dt_bootstrap *out, dt_arena *arena, dt_error *err);
void dt_bootstrap_release(dt_bootstrap *bootstrap); /* accepts one of zero bytes */

/* remote_helper/probe.c's object of the node; the agent is put there first where it is not.
 * *skew_ms: its clock minus ours, as well as an answer tells. bundle: "-" for none. */
dt_status dt_bootstrap_probe(json_t **facts, int64_t *skew_ms, const dt_bootstrap *bootstrap,
                             const char *node, const char *bundle, const atomic_bool *cancelled,
                             dt_error *err);

/* Where the agent is on the node that gave these facts. */
dt_status dt_bootstrap_agent(const char **path, const dt_bootstrap *bootstrap, const char *node,
                             const json_t *facts, dt_arena *arena, dt_error *err);

#endif
