#include "recipes/fields/nodes.h"
#include "recipes/fields/task_fields.h"
#include "recipes/plan/plan_int.h"

/* GPUs and ranks that a node should use: its own settings, else the recipe's, else what was
 * found. If the recipe sets a number of GPUs and more ranks, the ranks share them. */
typedef struct wish {
    int64_t first, gpus, ranks;
} wish;

static wish wish_of(const dt_recipe *recipe, const dt_node_spec *spec, int64_t found)
{
    int64_t own = spec->slots && found <= 0 ? 0 : spec->gpus;
    int64_t asked = own >= 0 ? own : recipe->gpus;
    int64_t ranks = spec->ranks > 0 ? spec->ranks : recipe->ranks;
    int64_t processes = dt_recipe_processes(recipe);
    wish out = {.first = spec->first_gpu};

    out.gpus = asked >= 0 ? asked : found > out.first ? found - out.first : 0;
    out.ranks = asked > 0 && ranks > out.gpus ? ranks : out.gpus;
    if (processes > 0)
        out.ranks = processes;
    return out;
}

static dt_status check_found(const wish *wanted, int64_t found, const char *node, dt_error *err)
{
    if (found < 0 || wanted->first + wanted->gpus <= found)
        return DT_OK;
    if (wanted->first > 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'first_gpu' is %lld with %lld GPUs from there on, but '%s' has %lld, "
                       "counted from 0: use GPUs that exist",
                       (long long)wanted->first, (long long)wanted->gpus, node, (long long)found);
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'gpus' is %lld, but '%s' has %lld: use at most this number, or leave out "
                   "'gpus' to use all",
                   (long long)wanted->gpus, node, (long long)found);
}

/* Refuses processes of a command that would leave GPUs out. */
static dt_status check_processes(const wish *wanted, const char *node, dt_error *err)
{
    if (wanted->gpus <= wanted->ranks || wanted->gpus % wanted->ranks == 0)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'processes' %lld does not divide the %lld GPUs of '%s': use a divisor, or set "
                   "'gpus'",
                   (long long)wanted->ranks, (long long)wanted->gpus, node);
}

/* Places the node's ranks after those of the previous nodes. */
static void lay_out(dt_plan *plan, dt_plan_rank *ranks, int64_t *next, int64_t node,
                    const wish *wanted, dt_arena *arena)
{
    bool dp = dt_plan_has_one_rank(&plan->recipe);
    int64_t threads = plan->recipe.threads > 0 ? plan->recipe.threads : 1;
    int64_t each = wanted->gpus / wanted->ranks; /* above 1: a process of a command has several */

    for (int64_t local = 0; local < (dp ? 1 : wanted->ranks); local++) {
        ranks[(*next)++] = (dt_plan_rank){
            .node = node,
            .device = dt_arena_printf(
                arena, "cuda:%lld",
                (long long)(wanted->first + local * (each > 1 ? each : 1) % wanted->gpus)),
            .local_rank = local,
            .replicas = dp         ? wanted->gpus
                        : each > 1 ? each
                                   : 1,
            .threads = threads};
    }
}

static void keep(const dt_plan *plan, dt_plan_rank *ranks, int64_t *next, int64_t node)
{
    for (int64_t i = 0; i < plan->world_size; i++)
        if (plan->ranks[i].node == node)
            ranks[(*next)++] = plan->ranks[i];
}

static dt_status spec_of(dt_node_spec *out, const dt_plan *plan, int64_t node, dt_arena *arena,
                         dt_error *err)
{
    *out = (dt_node_spec){.gpus = -1, .ranks = -1};
    /* A Slurm cluster is one item with several nodes. */
    if (plan->node_count != plan->recipe.nodes.count)
        return DT_OK;
    return dt_node_spec_parse(out, plan->recipe.nodes.items[node], arena, err);
}

dt_status dt_plan_devices_open(bool *out, const dt_plan *plan, int64_t node, dt_arena *arena,
                               dt_error *err)
{
    dt_node_spec spec;
    dt_status st = spec_of(&spec, plan, node, arena, err);

    *out = st == DT_OK && (spec.slots || (spec.gpus < 0 && plan->recipe.gpus < 0));
    return st;
}

dt_status dt_plan_use_devices(dt_plan *plan, const int64_t *found, dt_arena *arena, dt_error *err)
{
    int64_t most = plan->world_size, next = 0;
    dt_plan_rank *ranks;
    dt_status st = DT_OK;
    wish *wishes;

    wishes = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(*wishes));
    for (int64_t node = 0; node < plan->node_count; node++) {
        dt_node_spec spec;

        DT_TRY(spec_of(&spec, plan, node, arena, err));
        wishes[node] = wish_of(&plan->recipe, &spec, found[node]);
        if (wishes[node].gpus > 0 || plan->recipe.gpus < 0)
            DT_TRY(check_found(&wishes[node], found[node], plan->node_names[node], err));
        if (wishes[node].gpus > 0)
            DT_TRY(check_processes(&wishes[node], plan->node_names[node], err));
        most += wishes[node].ranks;
    }
    ranks = dt_arena_alloc_array(arena, (size_t)most, sizeof(*ranks));
    for (int64_t node = 0; node < plan->node_count; node++) {
        if (wishes[node].gpus == 0)
            keep(plan, ranks, &next, node);
        else
            lay_out(plan, ranks, &next, node, &wishes[node], arena);
    }
    plan->ranks = ranks;
    plan->world_size = next;
out:
    return st;
}
