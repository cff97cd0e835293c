#include "runner/stop/stop.h"

#include <string.h>

#include "base/process.h"
#include "runner/stop/direct.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"

/* A node of an ended run that has not confirmed that nothing is left. */
typedef struct unproven {
    dt_node node;
    int64_t attempt;
    int64_t place;       /* index in `places`; -1: it is not asked */
    const char *problem; /* why it cannot be asked; NULL: none */
} unproven;

typedef struct unproven_list {
    unproven *items;
    dt_direct_place *places; /* what is asked */
    int64_t count, place_count;
} unproven_list;

/* Finds where the attempt's processes are on the node. Without a place nothing was started there. */
static dt_status add_place(unproven_list *all, unproven *one, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err)
{
    const char *below = dt_arena_printf(arena, "attempt-%lld/node-%lld", (long long)one->attempt,
                                        (long long)one->node.node);
    dt_error unplaced = DT_ERROR_INIT;
    dt_node_layout layout = {0};
    const char *here;
    bool restored;
    dt_status st;

    DT_TRY(dt_run_path(&here, run->id, below, arena, err));
    st = dt_copies_place(&layout, &restored, store, run->id, one->attempt, one->node.node, here,
                         arena, &unplaced);
    if (st == DT_OK) {
        one->place = all->place_count;
        all->places[all->place_count++] = (dt_direct_place){
            .node = one->node.name, .agent = layout.agent, .folder = layout.folder};
    } else if (st != DT_ERR_NOT_FOUND)
        one->problem = dt_arena_strdup(arena, unplaced.message);
    st = DT_OK;
out:
    json_decref(layout.paths);
    return st;
}

static bool is_forgiven(const dt_value *forgiven, const char *name)
{
    for (size_t i = 0; i < forgiven->items_count; i++)
        if (strcmp(forgiven->items[i], name) == 0)
            return true;
    return false;
}

/* Lists the nodes of all attempts that have not confirmed. *asked: those that could not be reached. */
static dt_status list_unproven(unproven_list *all, int64_t *asked, dt_store *store,
                               const dt_run *run, const dt_value *forgiven, dt_arena *arena,
                               dt_error *err)
{
    dt_status st = DT_OK;
    int64_t most = 0;

    *all = (unproven_list){0};
    for (int pass = 0; pass < 2; pass++) { /* counts, then lists */
        for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
            dt_node *nodes;
            int64_t count;

            DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, attempt, arena, err));
            for (int64_t i = 0; i < count; i++) {
                unproven *one;

                if (strcmp(nodes[i].state, "released") == 0)
                    continue;
                most++;
                if (pass == 0)
                    continue;
                one = &all->items[all->count++];
                *one = (unproven){.node = nodes[i], .attempt = attempt, .place = -1};
                *asked += strcmp(nodes[i].state, "lost") == 0 ? 1 : 0;
                if (!is_forgiven(forgiven, nodes[i].name))
                    DT_TRY(add_place(all, one, store, run, arena, err));
            }
        }
        if (pass == 0) {
            all->items = dt_arena_alloc_array(arena, (size_t)most + 1, sizeof(*all->items));
            all->places = dt_arena_alloc_array(arena, (size_t)most + 1, sizeof(*all->places));
        }
    }
out:
    return st;
}

dt_status dt_orphans_end(int64_t *asked, dt_strbuf *left, dt_store *store, const dt_run *run,
                         const dt_value *forgiven, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    unproven_list all;

    *asked = 0;
    DT_TRY(list_unproven(&all, asked, store, run, forgiven, arena, err));
    dt_direct_ask(all.places, all.place_count, DT_DIRECT_NOW, "dtrun stop", arena);
    for (int64_t i = 0; i < all.count; i++) {
        unproven *one = &all.items[i];
        const char *problem = one->place >= 0 ? all.places[one->place].problem : one->problem;

        if (problem != NULL) {
            dt_strbuf_add_fmt(left, "%s%s: %s", left->length > 0 ? "; " : "", one->node.name,
                              problem);
            continue;
        }
        one->node.state = "released";
        DT_TRY(dt_store_node_set(store, run->id, one->attempt, &one->node, err));
    }
    DT_TRY(dt_run_amend_end(store, run->id, arena, err));
out:
    return st;
}

/* --- checks by a launch or the doctor */

/* The nodes that are asked what runs there. */
typedef struct asked_nodes {
    const char *const *names; /* that may be asked */
    int64_t count;
    dt_direct_place *places; /* [place_count], those where something may be left */
    int64_t place_count;
} asked_nodes;

static const dt_direct_place *find_place(const asked_nodes *all, const char *name)
{
    for (int64_t i = 0; i < all->place_count; i++)
        if (strcmp(all->places[i].node, name) == 0)
            return &all->places[i];
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

/* Notes that the node must be asked, if it is one of those that may be. */
static void note_node(asked_nodes *all, const char *name)
{
    for (int64_t i = 0; i < all->count && find_place(all, name) == NULL; i++)
        if (strcmp(all->names[i], name) == 0)
            all->places[all->place_count++] = (dt_direct_place){.node = all->names[i]};
}

/* Settles what the node has answered; without an answer nothing changes. */
static dt_status settle_node(const asked_nodes *all, dt_store *store, const dt_run *run,
                             int64_t attempt, dt_node *node, dt_error *err)
{
    const dt_direct_place *place = find_place(all, node->name);

    if (place == NULL || place->problem != NULL || !json_is_array(place->running) ||
        runs_there(place->running, run->id))
        return DT_OK;
    node->state = "released";
    return dt_store_node_set(store, run->id, attempt, node, err);
}

/* Goes over the nodes of a run that have not confirmed that nothing is left. settles: with the answers; else they are
 * only noted. */
static dt_status look_at_run(asked_nodes *all, bool settles, dt_store *store, const dt_run *run,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_node *nodes;
    int64_t count;

    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        DT_TRY(dt_store_node_list(store, &nodes, &count, run->id, attempt, arena, err));
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(nodes[i].state, "released") == 0)
                continue;
            if (settles)
                DT_TRY(settle_node(all, store, run, attempt, &nodes[i], err));
            else
                note_node(all, nodes[i].name);
        }
    }
    if (settles)
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

    all.places = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(all.places[0]));
    DT_TRY(dt_store_run_list(store, &runs, &run_count, -1, 0, arena, err));
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < run_count; i++)
            if (dt_run_state_is_terminal(runs[i].state) && runs[i].exit_code == DT_EXIT_LEFT)
                DT_TRY(look_at_run(&all, pass == 1, store, &runs[i], arena, err));
        if (pass == 0)
            dt_direct_ask(all.places, all.place_count, DT_DIRECT_LIST, NULL, arena);
    }
out:
    for (int64_t i = 0; i < all.place_count; i++)
        json_decref(all.places[i].running);
    return st;
}
