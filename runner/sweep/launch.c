#include "runner/sweep/launch.h"

#include <string.h>

#include "base/resources.h"
#include "recipes/fields/fields.h"
#include "runner/cli/read_recipe.h"
#include "runner/launch/preflight.h"
#include "runner/sweep/drive.h"

enum { AT_ONCE_MOST = 64 };

/* "optimizer.lr=1e-4 seed=2" */
static const char *values_of(const dt_sweep *sweep, dt_arena *arena)
{
    const char *text;
    dt_strbuf values;

    dt_strbuf_init(&values);
    for (size_t i = 0; i < sweep->axes; i++)
        dt_strbuf_add_fmt(&values, "%s%s=%s", i > 0 ? " " : "", sweep->paths[i], sweep->values[i]);
    text = dt_arena_strdup(arena, values.data);
    dt_strbuf_release(&values);
    return text;
}

/* Removes the sweep from a point's recipe: its hash is then the same as for a run launched
 * alone. */
static void forget_sweep(dt_recipe *recipe)
{
    dt_recipe defaults;

    dt_recipe_init(&defaults);
    recipe->search = defaults.search;
    recipe->early_stop = defaults.early_stop;
}

static dt_status read_point(dt_sweep_point *out, dt_recipe *recipe, dt_recipe_source *source,
                            int64_t index, dt_call *call, dt_error *err)
{
    dt_status st;

    *out = (dt_sweep_point){.run = "", .problem = ""};
    source->sweep->point = index;
    st = dt_recipe_read_all(recipe, source, call->problems, call->arena, err);
    if (st == DT_OK && dt_arguments_flag(call->args, "strict")) {
        dt_problems_be_strict(call->problems);
        if (call->problems->errors > 0)
            st = DT_FAIL(err, DT_ERR_RECIPE, "%s", dt_problems_first(call->problems)->message);
    }
    DT_TRY(st);
    out->values = values_of(source->sweep, call->arena);
    forget_sweep(recipe);
    out->origins = source->origins != NULL ? dt_origins_document(source->origins, NULL) : NULL;
out:
    return st;
}

static dt_sweep_group group_of(const dt_recipe *recipe, const dt_labels *labels, int64_t count)
{
    return (dt_sweep_group){
        .at_once = recipe->search.at_once,
        .nodes = recipe->search.nodes,
        .metric = recipe->early_stop.metric,
        .after = recipe->early_stop.after,
        .keep = recipe->early_stop.keep,
        .tags = labels->tags != NULL ? labels->tags : "",
        .count = count,
    };
}

/* Returns how many points run at once: as many as this machine's processors allow; one if they
 * train on CPUs elsewhere; without limit (places.h) if they have GPUs or nodes of their own. */
static int64_t count_side_by_side(const dt_plan *plan, int64_t nodes)
{
    int64_t threads = 0, count;

    if (nodes > 0 && nodes < plan->node_count)
        return AT_ONCE_MOST;
    for (int64_t i = 0; i < plan->world_size; i++)
        if (strncmp(plan->ranks[i].device, "cuda", strlen("cuda")) == 0)
            return AT_ONCE_MOST;
    for (int64_t i = 0; i < plan->world_size; i++) {
        const dt_plan_rank *rank = &plan->ranks[i];

        if (strncmp(plan->node_names[rank->node], "localhost", strlen("localhost")) != 0)
            return 1;
        threads += rank->replicas * rank->threads;
    }
    count = threads > 0 ? dt_resources_cores() / threads : 1;
    return count < 1 ? 1 : count < AT_ONCE_MOST ? count : AT_ONCE_MOST;
}

dt_status dt_sweep_launch(const char **name, const dt_recipe_source *source,
                          const dt_labels *labels, dt_call *call, dt_error *err)
{
    int64_t count = source->sweep->points;
    dt_recipe *recipes = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(*recipes));
    dt_recipe_source of = *source;
    dt_preflight flight;
    dt_recipe first;
    dt_sweep_group group = {0};
    dt_status st = DT_OK;

    of.sweep->point = 0;
    DT_TRY(dt_recipe_read_all(&first, &of, call->problems, call->arena, err));
    group = group_of(&first, labels, count);
    group.points = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(group.points[0]));
    *name = labels->group != NULL && labels->group[0] != '\0' ? labels->group : first.name;
    for (int64_t i = 0; i < count; i++)
        DT_TRY(read_point(&group.points[i], &recipes[i], &of, i, call, err));
    /* Only the first point is checked: problems with data or memory of another point are its
     * own. */
    DT_TRY(dt_preflight_check(&flight, &recipes[0], source, call->arena, err));
    if (group.at_once == 0)
        group.at_once = count_side_by_side(&flight.plan, group.nodes);
    DT_TRY(dt_group_make(&group, *name, recipes, source->text, call->arena, err));
    *name = group.name;
    DT_TRY(dt_drive_start(&group, source->text, err));
out:
    for (int64_t i = 0; group.points != NULL && i < count; i++)
        json_decref(group.points[i].origins);
    return st;
}
