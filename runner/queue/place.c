/* place: gives slots to a run that is launched at once, by the decision of the queue, and learns what machines have. */
#include <unistd.h>

#include "base/file.h"
#include "base/names.h"
#include "base/resources.h"
#include "recipes/fields/nodes.h"
#include "runner/launch/nodes.h"
#include "runner/queue/queue.h"
#include "store/store.h"

/* --- machines */

static bool knows(const dt_queue_file *file, const dt_plan *plan)
{
    bool known = true;

    for (int64_t i = 0; i < plan->node_count; i++)
        known = known && dt_queue_machine_find(file, plan->node_names[i]) != NULL;
    return known;
}

/* The nodes answer before the file is locked: one that hangs holds up nobody else. */
dt_status dt_queue_machines_learn(const dt_preflight *flight, dt_arena *arena, dt_error *err)
{
    const dt_plan *plan = &flight->plan;
    dt_queue_file file = {.lock = -1};
    dt_probe_report report = {0};
    bool elsewhere = false;
    dt_status st;

    DT_TRY(dt_queue_read(&file, arena, err));
    if (knows(&file, plan))
        return DT_OK;
    for (int64_t i = 0; i < plan->node_count; i++)
        elsewhere = elsewhere || (!dt_node_is_here(plan->node_names[i]) &&
                                  dt_queue_machine_find(&file, plan->node_names[i]) == NULL);
    if (elsewhere)
        DT_TRY(dt_nodes_probe(&report, flight, false, arena, err));
    DT_TRY(dt_queue_open(&file, arena, err));
    for (int64_t i = 0; i < plan->node_count; i++)
        if (dt_node_is_here(plan->node_names[i]))
            (void)dt_queue_machine_add(&file, plan->node_names[i]);
        else if (i < report.count)
            dt_queue_machine_probed(&file, &report.probes[i]);
    DT_TRY(dt_queue_write(&file, err));
out:
    dt_queue_close(&file);
    dt_probe_release(&report);
    return st;
}

/* --- a place */

dt_status dt_queue_lock_places(int *lock, dt_arena *arena, dt_error *err)
{
    const char *path;
    dt_status st = dt_queue_path(&path, "places.lock", arena, err);

    return st == DT_OK ? dt_file_lock(lock, path, err) : st;
}

/* Makes the plan of all nodes, as far as they are known: the launch reports the problem of one that could not be asked.
 * *gpus: a rank uses one. */
static dt_status make_plan(bool *gpus, dt_plan *out, const dt_plan *given, dt_arena *arena,
                           dt_error *err)
{
    size_t count = (size_t)given->node_count;
    int64_t *cores = dt_arena_alloc_array(arena, count, sizeof(*cores)),
            *found = dt_arena_alloc_array(arena, count, sizeof(*found));
    dt_queue_file file;
    dt_status st;

    *gpus = false;
    DT_TRY(dt_queue_read(&file, arena, err));
    for (size_t i = 0; i < count; i++) {
        const dt_queue_machine *machine = dt_queue_machine_find(&file, given->node_names[i]);
        bool here = dt_node_is_here(given->node_names[i]);

        cores[i] = here ? dt_resources_cores() : machine != NULL ? machine->cores : 1;
        found[i] = here ? dt_placement_gpus_here() : machine != NULL ? machine->gpus : -1;
    }
    DT_TRY(dt_plan_make_on(out, &given->recipe, cores, arena, err));
    DT_TRY(dt_plan_use_devices(out, found, arena, err));
    for (int64_t i = 0; i < out->world_size; i++)
        *gpus = *gpus || dt_device_gpu(out->ranks[i].device) >= 0;
out:
    return st;
}

static dt_status decide(dt_queue_place *io, const dt_queue_newcomer *newcomer, dt_store *store,
                        dt_arena *arena, dt_error *err)
{
    dt_queue_facts facts;
    const dt_order_run *run;
    dt_string_list *nodes;
    dt_status st;

    DT_TRY(dt_queue_look(&facts, store, NULL, newcomer, arena, err));
    run = &facts.order.runs[facts.order.run_count - 1];
    io->there = run->verdict == DT_ORDER_START || run->verdict == DT_ORDER_NEVER;
    if (run->verdict != DT_ORDER_START)
        goto out;
    nodes = dt_arena_alloc(arena, sizeof(*nodes));
    dt_queue_items(nodes, &facts.order, run, &newcomer->plan->recipe.nodes, arena);
    io->nodes = nodes;
out:
    return st;
}

dt_status dt_queue_place_take(dt_queue_place *out, const dt_preflight *flight, int64_t wanted,
                              dt_store *store, dt_arena *arena, dt_error *err)
{
    bool part = wanted > 0 && wanted < flight->plan.node_count, uses_gpus;
    dt_plan plan;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    *out = (dt_queue_place){.there = true, .lock = -1};
    (void)dt_queue_machines_learn(flight, arena, NULL);
    if (make_plan(&uses_gpus, &plan, &flight->plan, arena, NULL) != DT_OK || (!part && !uses_gpus))
        goto out;
    st = dt_queue_lock_places(&out->lock, arena, &problem);
    out->there = st != DT_ERR_BUSY;
    if (st == DT_ERR_BUSY) {
        st = DT_OK;
        goto out;
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(decide(out, &(dt_queue_newcomer){.plan = &plan, .wanted = part ? wanted : 0}, store,
                  arena, err));
out:
    dt_error_clear(&problem);
    if (!out->there || st != DT_OK)
        dt_queue_place_release(out);
    return st;
}

void dt_queue_place_release(dt_queue_place *place)
{
    if (place->lock >= 0)
        close(place->lock);
    place->lock = -1;
}
