/* rules_tensor: checks that ranks can divide the layers of a model (recipes/rules/rules.h). */
#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "recipes/rules/rules.h"

#include "base/banned.h"

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
    long long ranks = c->recipe->tensor;
    long long below = nearest(size, value, ranks, -size->step);
    long long above = nearest(size, value, ranks, size->step);
    const char *padded = size->step > 1 ? " (with padding)" : "";
    const char *relation = size->shared ? "neither a multiple nor a divisor" : "not a multiple";

    if (below > 0)
        dt_rule_broken(c, "tensor",
                       "'%s' %lld%s is %s of 'tensor' %lld: the nearest that can be divided are "
                       "%lld and %lld",
                       size->path, (long long)value, padded, relation, ranks, below, above);
    else
        dt_rule_broken(
            c, "tensor",
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
        if (value > 0 && !dt_tensor_divides(value, c->recipe->tensor, size->shared))
            break_size(c, size, value);
    }
}

/* Checks the nodes whose number of ranks the recipe alone sets. */
static void check_ranks(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    for (int64_t i = 0; i < recipe->nodes.count; i++) {
        long long ranks = recipe->gpus > 0 ? recipe->gpus : recipe->ranks, tensor = recipe->tensor;
        dt_node_spec spec;

        if (dt_node_is_slurm(recipe->nodes.items[i]) ||
            dt_node_spec_parse(&spec, recipe->nodes.items[i], c->reading->arena, NULL) != DT_OK ||
            spec.slots || spec.gpus >= 0 || recipe->gpus < 0)
            continue;
        ranks = spec.ranks > 0 ? spec.ranks : ranks;
        if (ranks % tensor == 0)
            continue;
        dt_rule_broken(c, "tensor",
                       "'%s' has %lld rank%s, not a multiple of 'tensor' %lld: ranks that divide "
                       "layers are on one node",
                       spec.destination, ranks, ranks == 1 ? "" : "s", tensor);
        return;
    }
}

void dt_rule_tensor(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);
    const dt_optimizer_facts *optimizer = &dt_optimizers[c->recipe->optimizer.kind];
    long long tensor = c->recipe->tensor;

    if (tensor == 1)
        return;
    if (kind->divided == NULL) {
        dt_rule_broken(c, "tensor",
                       "'tensor' %lld and 'model.kind' '%s' cannot be combined: layers of this "
                       "kind are not divided",
                       tensor, kind->name);
        return;
    }
    if (c->recipe->strategy.kind == DT_STRATEGY_DP)
        dt_rule_broken(c, "tensor",
                       "'tensor' %lld and 'strategy: dp' cannot be combined: use 'ddp' or 'fsdp'",
                       tensor);
    if (optimizer->whole_matrices != NULL)
        dt_rule_broken(
            c, "tensor",
            "'tensor' %lld and optimizer '%s' cannot be combined: it needs whole matrices", tensor,
            optimizer->name);
    check_sizes(c, kind);
    check_ranks(c);
}
