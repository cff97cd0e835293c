/* places: the nodes and GPUs of a point of a sweep, by the rules of the queue (runner/queue/queue.h). */
#include "recipes/fields/nodes.h"
#include "recipes/read/reader.h"
#include "runner/cli/read_recipe.h"
#include "runner/sweep/sweep_int.h"

/* Writes "nodes=[...]"; NULL if they are as in the recipe, except for a resumed run, which may have been elsewhere. */
static const char *nodes_value(const dt_string_list *chosen, const dt_string_list *items,
                               bool again, dt_arena *arena)
{
    bool same = !again && chosen->count == items->count;

    for (int64_t i = 0; same && i < items->count; i++)
        same = strcmp(chosen->items[i], items->items[i]) == 0;
    return same ? NULL : dt_queue_nodes_value(chosen, arena);
}

/* Returns false if its nodes are not known here, or its launch refuses it. */
static bool read_flight(dt_preflight *out, const dt_sweep_group *group, int64_t index,
                        dt_arena *arena)
{
    const char *path =
        dt_arena_printf(arena, "%s/point-%lld.yaml", group->folder, (long long)index + 1);
    dt_recipe_source source = {0};
    dt_recipe recipe;

    if (dt_recipe_source_read(&source, path, arena, NULL) != DT_OK)
        return false;
    source.find_run = dt_find_weights;
    return dt_recipe_read(&recipe, &source, arena, NULL) == DT_OK &&
           !dt_node_is_slurm(recipe.nodes.items[0]) &&
           dt_preflight_without_data(out, &recipe, arena, NULL) == DT_OK;
}

dt_status dt_point_place(dt_queue_place *out, const char **nodes, const dt_sweep_group *group,
                         int64_t index, dt_store *store, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_arena scratch;

    *out = (dt_queue_place){.there = true, .lock = -1};
    *nodes = NULL;
    dt_arena_init(&scratch, 0);
    if (!read_flight(&flight, group, index, &scratch))
        goto out;
    DT_TRY(dt_queue_place_take(out, &flight, group->nodes, store, &scratch, err));
    if (out->nodes != NULL)
        *nodes =
            nodes_value(out->nodes, &flight.plan.recipe.nodes, group->points[index].again, arena);
    out->nodes = NULL; /* of the scratch arena */
out:
    dt_arena_release(&scratch);
    return st;
}
