#include "runner/cli/leftover.h"

#include <string.h>

#include "runner/cli/child.h"
#include "runner/nodes/nodes.h"
#include "runner/supervisor/copies.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

/* *problem: why it is not done, in the arena; NULL where it is. */
static dt_status end_on(const char **problem, dt_store *store, const dt_run *run, int64_t attempt,
                        const dt_node *node, dt_arena *arena, dt_error *err)
{
    dt_error unplaced = DT_ERROR_INIT;
    const char *below =
        dt_arena_printf(arena, "attempt-%lld/node-%lld", (long long)attempt, (long long)node->node);
    dt_strbuf out, complaint;
    dt_node_place place = {0};
    const char *here;
    const char **argv;
    bool restored;
    dt_status st;
    int code;

    dt_strbuf_init(&out);
    dt_strbuf_init(&complaint);
    *problem = NULL;
    if (below == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_run_path(&here, run->id, below, arena, err));
    st = dt_copies_place(&place, &restored, store, run->id, attempt, node->node, here, arena,
                         &unplaced);
    if (st == DT_ERR_NOT_FOUND) { /* nothing was placed there, and nothing is left */
        st = DT_OK;
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", unplaced.message);
    const char *const words[] = {place.agent, "end", place.folder, NULL};
    DT_TRY(dt_node_command(&argv, node->name, words, true, arena, err));
    DT_TRY(dt_child_run(&code, &out, &complaint, (char *const *)argv, err));
    if (code != 0) {
        size_t length = strcspn(complaint.data, "\n");
        *problem = dt_arena_printf(arena, "%.*s", (int)length, complaint.data);
        if (*problem == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
    }
out:
    json_decref(place.paths);
    dt_strbuf_release(&out);
    dt_strbuf_release(&complaint);
    return st;
}

dt_status dt_leftover_end(int64_t *asked, dt_strbuf *left, dt_store *store, const dt_run *run,
                          dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *problem;
    dt_node *nodes;
    int64_t count;

    *asked = 0;
    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, attempt, arena, err));
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(nodes[i].state, "released") == 0)
                continue;
            *asked += strcmp(nodes[i].state, "lost") == 0 ? 1 : 0;
            DT_TRY(end_on(&problem, store, run, attempt, &nodes[i], arena, err));
            if (problem != NULL) {
                dt_strbuf_add_fmt(left, "%s%s: %s", left->length > 0 ? "; " : "", nodes[i].name,
                                  problem);
                continue;
            }
            nodes[i].state = "released";
            DT_TRY(dt_store_node_set(store, run->id, attempt, &nodes[i], err));
        }
    }
out:
    return st;
}
