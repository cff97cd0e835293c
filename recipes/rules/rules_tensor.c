/* rules_tensor: checks that ranks can divide the layers of a model (recipes/rules/rules.h). */
#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "recipes/rules/rules.h"

/* Returns the nearest size below (step < 0) or above that the ranks can divide; 0: none. */
static int64_t nearest(const dt_divided_size *size, int64_t from, int64_t ranks, int64_t step)
{
    for (int64_t at = from + step; at > 0 && at <= 2 * from + size->step * ranks; at += step)
        if (dt_tensor_divides(at, ranks, size->shared))
            return at;
    return 0;
}

static void break_size(const dt_rule_case *c, const dt_divided_size *size, int64_t value)
{
    long long ranks = c->recipe->tensor.size;
    long long below = nearest(size, value, ranks, -size->step);
    long long above = nearest(size, value, ranks, size->step);
    const char *padded = size->step > 1 ? " (with padding)" : "";
    const char *relation = size->shared ? "neither a multiple nor a divisor" : "not a multiple";

    if (below > 0)
        dt_rule_broken(c, "tensor.size",
                       "'%s' %lld%s is %s of 'tensor' %lld: the nearest that can be divided are "
                       "%lld and %lld",
                       size->path, (long long)value, padded, relation, ranks, below, above);
    else
        dt_rule_broken(
            c, "tensor.size",
            "'%s' %lld%s is %s of 'tensor' %lld: the nearest that can be divided is %lld",
            size->path, (long long)value, padded, relation, ranks, above);
}

static void check_sizes(const dt_rule_case *c, const dt_architecture *kind)
{
    dt_model_config config;

    dt_model_config_make(&config, c->recipe, c->recipe->model.vocab);
    for (const dt_divided_size *size = kind->divided; size->path != NULL; size++) {
        int64_t value = size->of(&config);

        /* the vocabulary of the data is checked when they are read */
        if (size->step > 1 && c->recipe->model.vocab == 0)
            continue;
        if (value > 0 && !dt_tensor_divides(value, c->recipe->tensor.size, size->shared))
            break_size(c, size, value);
    }
}

/* Returns the ranks of a node if the recipe alone sets their number; 0: it depends on the node. */
static int64_t known_ranks(const dt_rule_case *c, int64_t node, const char **name)
{
    const dt_recipe *recipe = c->recipe;
    dt_node_spec spec;

    if (dt_node_is_slurm(recipe->nodes.items[node]) ||
        dt_node_spec_parse(&spec, recipe->nodes.items[node], c->reading->arena, NULL) != DT_OK ||
        spec.slots || spec.gpus >= 0 || recipe->gpus < 0)
        return 0;
    *name = spec.destination;
    if (spec.ranks > 0)
        return spec.ranks;
    return recipe->gpus > 0 ? recipe->gpus : recipe->ranks;
}

static void check_ranks(const dt_rule_case *c)
{
    long long tensor = c->recipe->tensor.size;
    const char *name;

    for (int64_t i = 0; i < c->recipe->nodes.count; i++) {
        long long ranks = known_ranks(c, i, &name);

        if (ranks % tensor == 0)
            continue;
        dt_rule_broken(c, "tensor.size",
                       "'%s' has %lld rank%s, not a multiple of 'tensor' %lld: ranks that divide "
                       "layers are on one node%s",
                       name, ranks, ranks == 1 ? "" : "s", tensor,
                       c->recipe->nodes.count > 1 ? ", unless 'tensor.across_nodes' is true" : "");
        return;
    }
}

void dt_rule_within(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    const char *name, *first_name = NULL;
    long long first = 0;

    if (recipe->strategy.within != DT_WITHIN_NODE)
        return;
    if (recipe->strategy.kind != DT_STRATEGY_FSDP) {
        dt_rule_broken(c, "strategy.within",
                       "'strategy.within' 'node' divides parameters, and only 'fsdp' does that: "
                       "use 'strategy.kind: fsdp', or leave 'within' out");
        return;
    }
    for (int64_t i = 0; i < recipe->nodes.count; i++) {
        long long ranks = known_ranks(c, i, &name);

        if (ranks > 0 && first == 0) {
            first = ranks;
            first_name = name;
        }
        if (ranks == first || ranks == 0)
            continue;
        dt_rule_broken(c, "strategy.within",
                       "'strategy.within' 'node' needs the same number of ranks on every node, but "
                       "'%s' has %lld and '%s' has %lld: set 'ranks', or 'within: run'",
                       first_name, first, name, ranks);
        return;
    }
}

void dt_rule_tensor(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);
    const dt_optimizer_facts *optimizer = &dt_optimizers[c->recipe->optimizer.kind];
    long long tensor = c->recipe->tensor.size;

    if (tensor == 1)
        return;
    if (kind->divided == NULL) {
        dt_rule_broken(c, "tensor.size",
                       "'tensor' %lld and 'model.kind' '%s' cannot be combined: layers of this "
                       "kind are not divided",
                       tensor, kind->name);
        return;
    }
    if (c->recipe->strategy.kind == DT_STRATEGY_DP)
        dt_rule_broken(c, "tensor.size",
                       "'tensor' %lld and 'strategy: dp' cannot be combined: use 'ddp' or 'fsdp'",
                       tensor);
    if (optimizer->whole_matrices != NULL)
        dt_rule_broken(
            c, "tensor.size",
            "'tensor' %lld and optimizer '%s' cannot be combined: it needs whole matrices", tensor,
            optimizer->name);
    check_sizes(c, kind);
    if (!c->recipe->tensor.across_nodes)
        check_ranks(c);
}
