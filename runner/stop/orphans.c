#include "runner/stop/orphans.h"

#include <string.h>

#include "runner/stop/direct.h"
#include "runner/supervisor/folder/copies.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

/* *problem: why it is not done, in the arena; NULL where it is. */
static dt_status end_on(const char **problem, dt_store *store, const dt_run *run, int64_t attempt,
                        const dt_node *node, dt_arena *arena, dt_error *err)
{
    const char *below =
        dt_arena_printf(arena, "attempt-%lld/node-%lld", (long long)attempt, (long long)node->node);
    dt_error unplaced = DT_ERROR_INIT;
    dt_node_layout place = {0};
    const char *here;
    bool restored, stays;
    dt_status st;

    *problem = NULL;
    if (below == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_run_path(&here, run->id, below, arena, err));
    st = dt_copies_place(&place, &restored, store, run->id, attempt, node->node, here, arena,
                         &unplaced);
    if (st == DT_OK)
        DT_TRY(dt_direct_end(problem, place.agent, node->name, place.folder, true, &stays, arena,
                             err));
    else if (st != DT_ERR_NOT_FOUND) /* where nothing was placed nothing is left */
        *problem = dt_arena_strdup(arena, unplaced.message);
    st = DT_OK;
out:
    json_decref(place.paths);
    return st;
}

static bool is_forgiven(const dt_value *forgiven, const char *name)
{
    for (size_t i = 0; i < forgiven->items_count; i++)
        if (strcmp(forgiven->items[i], name) == 0)
            return true;
    return false;
}

dt_status dt_orphans_end(int64_t *asked, dt_strbuf *left, dt_store *store, const dt_run *run,
                         const dt_value *forgiven, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *problem = NULL;
    dt_node *nodes;
    int64_t count;

    *asked = 0;
    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, attempt, arena, err));
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(nodes[i].state, "released") == 0)
                continue;
            *asked += strcmp(nodes[i].state, "lost") == 0 ? 1 : 0;
            problem = NULL;
            if (!is_forgiven(forgiven, nodes[i].name))
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
