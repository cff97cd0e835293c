#include "runner/launch/slurm_plan.h"

#include <string.h>

#include "base/resources.h"
#include "recipes/fields/nodes.h"
#include "runner/node_setup/slurm_nodes.h"
#include "runner/slurm/allocation.h"
#include "runner/slurm/name.h"

/* The recipe's node item, and the items that it expands to. */
typedef struct expansion {
    dt_node_spec spec;
    const char **items; /* [count] "slurm:12/gpu-a ranks=2" */
    int64_t *cores;     /* [count] */
    int64_t count;
    int64_t gpus; /* per node; -1: not given */
} expansion;

static void make_room(expansion *out, int64_t count, dt_arena *arena)
{
    out->count = count;
    out->items = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->items[0]));
    out->cores = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->cores[0]));
}

/* Adds a node. ranks: of the recipe if given, else of Slurm; 0: not given. */
static void add_item(expansion *out, int64_t i, const char *name, int64_t ranks, dt_arena *arena)
{
    dt_strbuf text;

    if (out->spec.ranks > 0)
        ranks = out->spec.ranks;
    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, name);
    if (ranks > 0)
        dt_strbuf_add_fmt(&text, " ranks=%lld", (long long)ranks);
    out->items[i] = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
}

static dt_status expand_inside(expansion *out, const dt_recipe *recipe, dt_arena *arena,
                               dt_error *err)
{
    int64_t wanted = dt_node_slurm_count(out->spec.destination);
    dt_slurm_allocation job;
    dt_status st;

    DT_TRY(dt_slurm_allocation_read(&job, arena, err));
    if (wanted > job.count)
        DT_THROW(err, DT_ERR_RECIPE,
                 "the recipe asks for %lld nodes, but Slurm job %lld has %lld: use 'nodes: slurm' "
                 "to take all nodes of the job",
                 (long long)wanted, (long long)job.job, (long long)job.count);
    make_room(out, wanted > 0 ? wanted : job.count, arena);
    for (int64_t i = 0; i < out->count; i++) {
        const char *name =
            dt_arena_printf(arena, "slurm:%lld/%s", (long long)job.job, job.hosts[i]);

        out->cores[i] = job.cpus[i];
        add_item(out, i, name, recipe->ranks == 1 ? job.tasks[i] : 0, arena);
    }
    out->gpus = job.gpus;
out:
    return st;
}

static dt_status expand_promise(expansion *out, dt_arena *arena, dt_error *err)
{
    int64_t count = dt_node_slurm_count(out->spec.destination);

    if (count == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "'nodes: slurm' takes the nodes of a Slurm job, and dtrun does not run in one: start "
            "dtrun with salloc or sbatch, or give a number as in 'nodes: slurm:4' to submit a job");
    make_room(out, count, arena);
    for (int64_t i = 0; i < count; i++) {
        const char *name =
            dt_arena_printf(arena, "slurm:%lld#%lld", (long long)count, (long long)i + 1);

        out->cores[i] = 1;
        add_item(out, i, name, 0, arena);
    }
    return DT_OK;
}

dt_status dt_slurm_plan(dt_plan *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_recipe expanded = *recipe;
    expansion nodes = {.gpus = -1};
    dt_status st;

    DT_TRY(dt_node_spec_parse(&nodes.spec, recipe->nodes.items[0], arena, err));
    if (!dt_node_is_slurm(nodes.spec.destination))
        return dt_plan_make(out, recipe, dt_resources_cores(), arena, err);
    if (dt_slurm_is_inside())
        DT_TRY(expand_inside(&nodes, recipe, arena, err));
    else
        DT_TRY(expand_promise(&nodes, arena, err));
    if (recipe->strategy.kind == DT_STRATEGY_DP && nodes.count > 1)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'strategy' is 'dp', which trains on one node, but the Slurm job has %lld: use "
                 "'ddp' or 'nodes: slurm:1'",
                 (long long)nodes.count);
    expanded.nodes = (dt_string_list){.items = nodes.items, .count = nodes.count};
    DT_TRY(dt_plan_make_on(out, &expanded, nodes.cores, arena, err));
    if (nodes.spec.gpus >= 0)
        out->recipe.gpus = nodes.spec.gpus;
    else if (recipe->gpus < 0 && nodes.gpus >= 0)
        out->recipe.gpus = nodes.gpus;
    out->recipe.nodes = recipe->nodes; /* a resumed run may be in another job */
out:
    return st;
}

bool dt_slurm_is_promised(const dt_plan *plan)
{
    int64_t count, index;

    return dt_slurm_name_is_place(plan->node_names[0], &count, &index);
}

dt_status dt_slurm_try(const dt_plan *plan, dt_arena *arena, dt_error *err)
{
    json_t *json = dt_plan_to_json(plan);
    dt_status st = dt_nodes_slurm_try(json, plan->node_count, arena, err);

    json_decref(json);
    return st;
}
