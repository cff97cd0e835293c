/* gpus: asks a node what uses its GPUs, at the start and at each change. */
#include <string.h>

#include "runner/node_setup/node_setup_int.h"

#define ANSWER_SECONDS 30.0 /* the node prints every ten */

/* *remote: runs `gpus watch` of the agent on the node, which is copied first if it is missing. */
static dt_status open_watch(dt_remote *remote, const char *node, const atomic_bool *cancelled,
                            dt_arena *arena, dt_error *err)
{
    dt_bootstrap bootstrap = {0};
    json_t *facts = NULL;
    const char *agent;
    dt_status st;
    int64_t skew_ms;

    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, node, "-", cancelled, err));
    DT_TRY(dt_bootstrap_agent(&agent, &bootstrap, node, facts, arena, err));
    DT_TRY(dt_remote_open(remote, node, (const char *const[]){agent, "node", "gpus", "watch", NULL},
                          cancelled, err));
out:
    json_decref(facts);
    dt_bootstrap_release(&bootstrap);
    return st;
}

dt_status dt_node_gpus_watch(const char *node, dt_gpu_uses_fn *take, void *context,
                             const atomic_bool *cancelled, dt_error *err)
{
    dt_remote remote = {.fd = -1, .problems = -1};
    bool opened = false, more = true;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_strbuf line;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&line);
    DT_TRY(open_watch(&remote, node, cancelled, &arena, err));
    opened = true;
    while (more) {
        json_t *uses = NULL;

        DT_TRY(dt_nodes_line(&line, &remote, ANSWER_SECONDS, err));
        if (line.length == 0)
            DT_THROW(err, DT_ERR_PEER, "node '%s': the watch of its GPUs has ended", node);
        DT_TRY(dt_json_parse(&uses, line.data, line.length, node, err));
        more = take(context, uses);
        json_decref(uses);
    }
out:
    if (opened)
        dt_remote_close(&remote);
    dt_strbuf_release(&line);
    dt_arena_release(&arena);
    return st;
}
