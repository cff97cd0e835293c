/* act: starts, preempts and drops runs of the queue. */
#include <string.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "recipes/fields/nodes.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/supervisor.h"
#include "store/store.h"

/* --- the place of a run in its plan */

static const char *item_of_units(const dt_order *order, const dt_order_run *run,
                                 const dt_order_part *part, dt_arena *arena)
{
    const char *name = order->machines[part->machine].name;

    if (run->unit_gpus == 0)
        return dt_arena_printf(arena, "%s ranks=%lld", name, (long long)part->units);
    name = dt_arena_printf(arena, "%s gpus=%lld", name, (long long)(part->units * run->unit_gpus));
    return dt_node_item_from(name, __builtin_ctzll(part->gpus), arena);
}

void dt_queue_items(dt_string_list *out, const dt_order *order, const dt_order_run *run,
                    const dt_string_list *items, dt_arena *arena)
{
    out->items = dt_arena_alloc_array(arena, (size_t)run->part_count, sizeof(out->items[0]));
    out->count = run->part_count;
    for (int64_t i = 0; i < run->part_count; i++) {
        const dt_order_part *part = &run->parts[i];

        out->items[i] = run->units > 0    ? item_of_units(order, run, part, arena)
                        : part->gpus != 0 ? dt_node_item_from(items->items[part->need],
                                                              __builtin_ctzll(part->gpus), arena)
                                          : items->items[part->need];
    }
}

static bool is_same(const dt_string_list *a, const dt_string_list *b)
{
    bool same = a->count == b->count;

    for (int64_t i = 0; same && i < a->count; i++)
        same = strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

/* What dt_plan_make leaves to its caller, and threads, which change the order of sums. */
static void keep_rest(dt_plan *to, const dt_plan *from)
{
    dt_plan made = *to;

    *to = *from;
    to->recipe.nodes = made.recipe.nodes;
    to->node_count = made.node_count;
    to->node_names = made.node_names;
    to->world_size = made.world_size;
    to->ranks = made.ranks;
    for (int64_t r = 0; r < to->world_size && r < from->world_size; r++)
        to->ranks[r].threads = from->ranks[r].threads;
}

/* Moves the plan to the place of the run. */
static dt_status move_plan(dt_plan *plan, const dt_order *order, const dt_order_run *run,
                           const dt_string_list *nodes, dt_arena *arena, dt_error *err)
{
    size_t count = (size_t)nodes->count;
    int64_t *cores = dt_arena_alloc_array(arena, count, sizeof(*cores)),
            *gpus = dt_arena_alloc_array(arena, count, sizeof(*gpus));
    dt_recipe recipe = plan->recipe;
    dt_status st = DT_OK;
    dt_plan made;

    recipe.nodes = *nodes;
    for (int64_t i = 0; i < nodes->count; i++) {
        cores[i] = order->machines[run->parts[i].machine].cores;
        gpus[i] = order->machines[run->parts[i].machine].gpus;
    }
    DT_TRY(dt_plan_make_on(&made, &recipe, cores, arena, err));
    DT_TRY(dt_plan_use_devices(&made, gpus, arena, err));
    keep_rest(&made, plan);
    *plan = made;
    DT_TRY(dt_plan_check_groups(plan, err));
    DT_TRY(dt_plan_divide_batch(plan, err));
out:
    return st;
}

static dt_status write_plan(const dt_plan *plan, const char *path, dt_error *err)
{
    json_t *json = dt_plan_to_json(plan);
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, json);
    st = dt_file_write_atomic(path, text.data, text.length, 0600, err);
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static dt_status place_run(const dt_queue_facts *facts, int64_t index, dt_arena *arena,
                           dt_error *err)
{
    const dt_order_run *run = &facts->order.runs[index];
    const dt_run *row = &facts->runs[index];
    dt_string_list nodes, items;
    const char *path;
    dt_status st = DT_OK;
    dt_plan plan;

    DT_TRY(dt_run_path(&path, row->id, NULL, arena, err));
    path = dt_arena_printf(arena, "%s/attempt-%lld/plan.json", path, (long long)row->attempt);
    DT_TRY(dt_plan_read(&plan, path, arena, err));
    items = plan.recipe.nodes;
    items.items = dt_arena_alloc_array(arena, (size_t)items.count, sizeof(items.items[0]));
    for (int64_t i = 0; i < items.count; i++)
        items.items[i] = dt_queue_item_of(dt_queue_entry_find(&facts->file, row->id),
                                          plan.node_names[i], plan.recipe.nodes.items[i], arena);
    dt_queue_items(&nodes, &facts->order, run, &items, arena);
    if (is_same(&nodes, &plan.recipe.nodes))
        goto out;
    DT_TRY(move_plan(&plan, &facts->order, run, &nodes, arena, err));
    DT_TRY(write_plan(&plan, path, err));
out:
    return st;
}

/* --- acts */

dt_status dt_queue_start(dt_store *store, const dt_queue_facts *facts, int64_t index, dt_error *err)
{
    const dt_run *row = &facts->runs[index];
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(place_run(facts, index, &arena, err));
    DT_TRY(dt_store_run_claim(store, row->id, row->attempt, err));
    st = dt_supervisor_revive(row->id, true, &problem);
    if (st == DT_OK || st == DT_ERR_BUSY) { /* busy: another command was faster */
        st = DT_OK;
        goto out;
    }
    (void)dt_store_run_set_state(store, row->id, DT_RUN_FAILED, DT_EXIT_SYSTEM, problem.message,
                                 dt_clock_wall_ms(), NULL);
    DT_THROW(err, st, "%s", problem.message);
out:
    dt_error_clear(&problem);
    dt_arena_release(&arena);
    return st;
}

/* Counts it first: the guarantee of the next attempt is longer in any case. */
static dt_status note_preemption(const char *run, const char *by, dt_arena *arena, dt_error *err)
{
    dt_queue_file file;
    dt_queue_entry *entry;
    dt_status st;

    DT_TRY(dt_queue_open(&file, arena, err));
    entry = dt_queue_entry_find(&file, run);
    if (entry != NULL) {
        entry->preemptions++;
        entry->by = by;
        DT_TRY(dt_queue_write(&file, err));
    }
out:
    dt_queue_close(&file);
    return st;
}

dt_status dt_queue_preempt(const dt_queue_facts *facts, int64_t index, dt_error *err)
{
    const dt_order_run *victim = &facts->order.runs[index], *by = &facts->order.runs[victim->about];
    const dt_run *row = &facts->runs[index];
    dt_status st = DT_OK;
    const char *folder;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_run_path(&folder, row->id, NULL, &arena, err));
    if (!dt_preempted_is_asked(folder, row->attempt)) {
        DT_TRY(note_preemption(row->id, by->id, &arena, err));
        DT_TRY(dt_preempted_ask(
            folder, row->attempt,
            dt_arena_printf(&arena, "preempted by run %s (%s), which has priority %lld", by->id,
                            facts->runs[victim->about].name, (long long)by->priority),
            err));
    }
    DT_TRY(dt_supervisor_preempt(row->id, err));
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_queue_drop(dt_store *store, const char *run, const char *reason, dt_error *err)
{
    bool begun = false;
    dt_arena arena;
    dt_status st;
    dt_run now;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_run_find(store, &now, run, &arena, err));
    if (now.state != DT_RUN_WAITING)
        DT_THROW(err, DT_ERR_BUSY, "run '%s' does not wait any more: it is %s", run,
                 dt_run_state_name(now.state));
    DT_TRY(dt_store_run_set_state(store, run, DT_RUN_STOPPED, DT_EXIT_STOPPED, reason,
                                  dt_clock_wall_ms(), err));
    DT_TRY(dt_store_commit(store, err));
    begun = false;
out:
    if (begun)
        dt_store_rollback(store);
    dt_arena_release(&arena);
    return st;
}
