/* plan: places the ranks of a recipe on nodes, and gives each a device and threads. */
#include "recipes/plan/plan.h"

#include <string.h>

#include "base/names.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/nodes.h"

/* --- ranks on nodes */

/* Returns whether each node has one rank with all of its devices: dp, and a command with processes: node. */
static bool plan_has_one_rank(const dt_recipe *recipe)
{
    return recipe->task == DT_TASK_COMMAND ? dt_recipe_processes(recipe) == DT_PROCESSES_NODE
                                           : recipe->strategy.kind == DT_STRATEGY_DP;
}

/* Returns the number of CPU ranks of the node: its own setting, else the recipe's. */
static int64_t ranks_of(const dt_recipe *recipe, const dt_node_spec *spec)
{
    int64_t processes = dt_recipe_processes(recipe);

    if (processes > 0)
        return processes;
    return spec->ranks > 0 ? spec->ranks : recipe->ranks; /* of a command: 1 */
}

static void lay_out(dt_plan *out, int64_t *next, int64_t node, int64_t count, int64_t cores)
{
    const dt_recipe *recipe = &out->recipe;
    int64_t threads = recipe->threads;
    bool dp = plan_has_one_rank(recipe);

    if (threads == 0)
        threads = cores / count > 1 ? cores / count : 1;
    for (int64_t local = 0; local < (dp ? 1 : count); local++)
        out->ranks[(*next)++] = (dt_plan_rank){.node = node,
                                               .local_rank = local,
                                               .device = DT_DEVICE_CPU,
                                               .replicas = dp ? count : 1,
                                               .threads = threads};
}

dt_status dt_plan_make_on(dt_plan *out, const dt_recipe *recipe, const int64_t *cores,
                          dt_arena *arena, dt_error *err)
{
    dt_node_spec *specs = NULL;
    int64_t next = 0;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->run = out->directory = out->resume_from = out->program_checkpoint = "";
    out->shared = true;
    out->recipe = *recipe;
    out->node_count = recipe->nodes.count;
    specs = dt_arena_alloc_array(arena, (size_t)out->node_count, sizeof(*specs));
    out->node_names =
        dt_arena_alloc_array(arena, (size_t)out->node_count, sizeof(*out->node_names));
    for (int64_t node = 0; node < out->node_count; node++) {
        DT_TRY(dt_node_spec_parse(&specs[node], recipe->nodes.items[node], arena, err));
        out->node_names[node] = specs[node].destination;
        out->world_size += plan_has_one_rank(recipe) ? 1 : ranks_of(recipe, &specs[node]);
    }
    out->ranks = dt_arena_alloc_array(arena, (size_t)out->world_size, sizeof(*out->ranks));
    for (int64_t node = 0; node < out->node_count; node++)
        lay_out(out, &next, node, ranks_of(recipe, &specs[node]), cores[node]);
out:
    return st;
}

dt_status dt_plan_make(dt_plan *out, const dt_recipe *recipe, int64_t cores, dt_arena *arena,
                       dt_error *err)
{
    int64_t *each = dt_arena_alloc_array(arena, (size_t)recipe->nodes.count, sizeof(*each));
    for (int64_t node = 0; node < recipe->nodes.count; node++)
        each[node] = cores;
    return dt_plan_make_on(out, recipe, each, arena, err);
}

int64_t dt_recipe_pass(const dt_recipe *recipe, int64_t replicas)
{
    return replicas *
           (recipe->batch.max_tokens > 0 ? recipe->batch.max_tokens : recipe->batch.sequences);
}

int64_t dt_plan_replicas(const dt_plan *plan)
{
    int64_t replicas = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        replicas += plan->ranks[r].replicas;
    return dt_recipe_data_ranks(&plan->recipe, replicas);
}

/* Returns the ranks of a node. */
static int64_t count_ranks(const dt_plan *plan, int64_t node)
{
    int64_t ranks = 0;

    for (int64_t i = 0; i < plan->world_size; i++)
        ranks += plan->ranks[i].node == node;
    return ranks;
}

/* Checks the nodes that have ranks, unless groups of tensor ranks may span several. */
static dt_status check_node_tensor(const dt_plan *plan, dt_error *err)
{
    long long tensor = plan->recipe.tensor.size;

    for (int64_t node = 0; node < plan->node_count && !plan->recipe.tensor.across_nodes; node++) {
        long long ranks = count_ranks(plan, node);

        if (ranks % tensor != 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' has %lld rank%s, not a multiple of 'tensor' %lld: ranks that "
                           "divide layers are on one node (set 'ranks' or 'gpus'%s)",
                           plan->node_names[node], ranks, ranks == 1 ? "" : "s", tensor,
                           plan->node_count > 1 ? ", or 'tensor.across_nodes: true'" : "");
    }
    if (plan->world_size % tensor != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the nodes have %lld ranks, not a multiple of 'tensor' %lld (set 'ranks' or "
                       "'gpus')",
                       (long long)plan->world_size, tensor);
    return DT_OK;
}

int64_t dt_plan_node_ranks(const dt_plan *plan)
{
    int64_t each = count_ranks(plan, plan->ranks[0].node);

    for (int64_t r = 0; r < plan->world_size; r++)
        if (count_ranks(plan, plan->ranks[r].node) != each ||
            plan->ranks[r].node != plan->ranks[r - r % each].node)
            return 0;
    return each;
}

/* Returns the first rank that is on a node with another number of ranks than the first node. */
static int64_t find_odd_rank(const dt_plan *plan)
{
    int64_t each = count_ranks(plan, plan->ranks[0].node), odd = 0;

    while (odd < plan->world_size && count_ranks(plan, plan->ranks[odd].node) == each)
        odd++;
    return odd < plan->world_size ? odd : 0;
}

static dt_status check_within_nodes(const dt_plan *plan, dt_error *err)
{
    long long each, tensor = plan->recipe.tensor.size;

    if (plan->recipe.strategy.within != DT_WITHIN_NODE)
        return DT_OK;
    each = dt_plan_node_ranks(plan);
    if (each == 0) {
        int64_t first = plan->ranks[0].node, odd = plan->ranks[find_odd_rank(plan)].node;

        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'strategy.within' 'node' needs the same number of ranks on every node, but "
                       "'%s' has %lld and '%s' has %lld: set 'ranks' or 'gpus', or 'within: run'",
                       plan->node_names[first], (long long)count_ranks(plan, first),
                       plan->node_names[odd], (long long)count_ranks(plan, odd));
    }
    if (each % tensor != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'strategy.within' 'node' and layers divided between nodes cannot be "
                       "combined: a node has %lld rank%s, not a multiple of 'tensor' %lld; use "
                       "'within: run'",
                       each, each == 1 ? "" : "s", tensor);
    return DT_OK;
}

dt_status dt_plan_check_groups(const dt_plan *plan, dt_error *err)
{
    dt_status st = DT_OK;

    if (plan->recipe.task != DT_TASK_TRAIN)
        return DT_OK;
    DT_TRY(check_node_tensor(plan, err));
    DT_TRY(check_within_nodes(plan, err));
out:
    return st;
}

dt_status dt_plan_divide_batch(dt_plan *plan, dt_error *err)
{
    int64_t total = plan->recipe.batch.total, replicas = dt_plan_replicas(plan);
    int64_t pass = dt_recipe_pass(&plan->recipe, replicas), each = pass / replicas;
    int64_t nearest = total > pass ? (total + pass / 2) / pass : 1;
    const char *unit = plan->recipe.batch.max_tokens > 0 ? "tokens" : "sequences";

    if (total == 0 || plan->recipe.task != DT_TASK_TRAIN)
        return DT_OK;
    plan->recipe.batch.accumulate = nearest;
    if (total == nearest * pass)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'batch.total' %lld cannot be divided: %lld rank%s x %lld %s take %lld at once: "
                   "set it to a multiple of this, such as %lld, or change '%s'",
                   (long long)total, (long long)replicas, replicas == 1 ? "" : "s", (long long)each,
                   unit, (long long)pass, (long long)(nearest * pass),
                   plan->recipe.batch.max_tokens > 0 ? "batch.max_tokens" : "batch.sequences");
}

dt_memory_ranks dt_plan_memory_ranks(const dt_plan *plan, int64_t rank)
{
    bool shares_memory = strcmp(plan->ranks[rank].device, DT_DEVICE_CPU) == 0;

    return (dt_memory_ranks){plan->world_size, shares_memory ? plan->ranks[rank].replicas : 1,
                             shares_memory, count_ranks(plan, plan->ranks[rank].node),
                             plan->ranks[rank].threads};
}

/* --- devices and threads */

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
static void lay_out_devices(dt_plan *plan, dt_plan_rank *ranks, int64_t *next, int64_t node,
                            const wish *wanted, dt_arena *arena)
{
    bool dp = plan_has_one_rank(&plan->recipe);
    int64_t threads = plan->recipe.threads > 0 ? plan->recipe.threads : 1;
    int64_t each = wanted->gpus / wanted->ranks; /* above 1: a process of a command has several */

    for (int64_t local = 0; local < (dp ? 1 : wanted->ranks); local++) {
        ranks[(*next)++] = (dt_plan_rank){
            .node = node,
            .device = dt_arena_printf(
                arena, DT_DEVICE_GPU "%lld",
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
            lay_out_devices(plan, ranks, &next, node, &wishes[node], arena);
    }
    plan->ranks = ranks;
    plan->world_size = next;
out:
    return st;
}
