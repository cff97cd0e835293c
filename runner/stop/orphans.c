#include "runner/stop/stop.h"

#include <string.h>

#include "base/process.h"
#include "runner/stop/direct.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"

/* Ends what the attempt has on the node. *problem: why that failed, in the arena, or NULL. */
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
    DT_TRY(dt_run_path(&here, run->id, below, arena, err));
    st = dt_copies_place(&place, &restored, store, run->id, attempt, node->node, here, arena,
                         &unplaced);
    if (st == DT_OK)
        DT_TRY(dt_direct_end(problem, place.agent, node->name, place.folder, true, &stays, arena,
                             err));
    else if (st != DT_ERR_NOT_FOUND) /* without a place nothing was started */
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
    DT_TRY(dt_run_amend_end(store, run->id, arena, err));
out:
    return st;
}

/* --- checks by a launch or the doctor */

/* What runs on the nodes that were asked. */
typedef struct asked_nodes {
    const char *const *names;
    int64_t count;
    json_t **running; /* [count]; NULL: not asked yet; JSON null: did not answer */
} asked_nodes;

static const json_t *ask(asked_nodes *all, const char *name, dt_arena *arena)
{
    for (int64_t i = 0; i < all->count; i++) {
        const char *agent;

        if (strcmp(all->names[i], name) != 0)
            continue;
        if (all->running[i] != NULL)
            return all->running[i];
        if (dt_direct_agent(&agent, name, arena, NULL) != DT_OK ||
            dt_direct_running(&all->running[i], agent, name, arena, NULL) != DT_OK) {
            json_decref(all->running[i]);
            all->running[i] = json_null();
        }
        return all->running[i];
    }
    return NULL;
}

static bool runs_there(const json_t *running, const char *run)
{
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)running, i, entry) {
        const char *id = json_string_value(json_object_get(entry, "run"));

        if (id != NULL && strcmp(id, run) == 0)
            return true;
    }
    return false;
}

static dt_status settle_run(asked_nodes *all, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *nodes;
    int64_t count;

    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, attempt, arena, err));
        for (int64_t i = 0; i < count; i++) {
            const json_t *running;

            if (strcmp(nodes[i].state, "released") == 0)
                continue;
            running = ask(all, nodes[i].name, arena);
            if (!json_is_array(running) || runs_there(running, run->id))
                continue;
            nodes[i].state = "released";
            DT_TRY(dt_store_node_set(store, run->id, attempt, &nodes[i], err));
        }
    }
    DT_TRY(dt_run_amend_end(store, run->id, arena, err));
out:
    return st;
}

dt_status dt_orphans_settle(dt_store *store, const char *const *names, int64_t count,
                            dt_arena *arena, dt_error *err)
{
    asked_nodes all = {.names = names, .count = count};
    dt_status st = DT_OK;
    dt_run *runs;
    int64_t run_count;

    all.running = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(all.running[0]));
    DT_TRY(dt_store_run_list(store, &runs, &run_count, -1, 0, arena, err));
    for (int64_t i = 0; i < run_count; i++)
        if (dt_run_state_is_terminal(runs[i].state) && runs[i].exit_code == DT_EXIT_LEFT)
            DT_TRY(settle_run(&all, store, &runs[i], arena, err));
out:
    for (int64_t i = 0; i < count; i++)
        json_decref(all.running[i]);
    return st;
}
