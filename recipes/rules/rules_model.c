/* rules_model: checks rules about the model, its division among ranks, the optimizer and the schedule
 * (recipes/rules/rules.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/decoder.h"
#include "recipes/architecture/published.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/rules/rules.h"

/* --- the model, the optimizer, the schedule */

/* Refuses fields that the kind of model does not have, instead of ignoring them. */
void dt_rule_model_fields(const dt_rule_case *c)
{
    const dt_architecture *architecture = dt_architecture_find(c->recipe->model.kind);

    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_architecture_ignores(c->recipe->model.kind, dt_fields[i].path) &&
            dt_reading_written(c->reading, dt_fields[i].path))
            dt_rule_broken(c, dt_fields[i].path, "'%s' has no effect on a model of kind '%s'",
                           dt_fields[i].path, architecture->name);
}

/* Checks that the preset is of the model's kind. A preset without a kind has the default kind of recipes. */
void dt_rule_preset_kind(const dt_rule_case *c)
{
    const dt_preset *preset = dt_preset_find(c->recipe->model.preset);
    const char *name = dt_architecture_find(c->recipe->model.kind)->name, *kind;

    if (preset == NULL || dt_architecture_ignores(c->recipe->model.kind, "model.preset"))
        return;
    kind = dt_preset_value_of(preset, "model.kind");
    if (kind == NULL)
        kind = dt_field_find("model.kind")->fallback;
    if (strcmp(kind, name) != 0)
        dt_rule_broken(c, "model.preset",
                       "the preset '%s' is a model of kind '%s', but 'model.kind' is '%s'",
                       preset->name, kind, name);
}

void dt_rule_attention_biases(const dt_rule_case *c)
{
    if (c->recipe->model.o_bias && !c->recipe->model.qkv_bias)
        dt_rule_broken(c, "model.o_bias", "'model.o_bias' requires 'model.qkv_bias'");
}

void dt_rule_end_ids(const dt_rule_case *c)
{
    const dt_string_list *ids = &c->recipe->model.end_ids;
    double number;

    for (int64_t i = 0; i < ids->count; i++)
        if (!dt_text_number(&number, ids->items[i]) || number != floor(number) || number < 0 ||
            number > INT32_MAX)
            dt_rule_broken_item(c, "model.end_ids", i,
                                "'model.end_ids' has '%s': expected token ids, 0 or more",
                                ids->items[i]);
}

static bool rotates(const dt_recipe *recipe)
{
    return !dt_architecture_ignores(recipe->model.kind, "model.rope_theta");
}

void dt_rule_kv_heads(const dt_rule_case *c)
{
    long long heads = c->recipe->model.heads, kv_heads = c->recipe->model.kv_heads;

    if (kv_heads > 0 && heads % kv_heads != 0)
        dt_rule_broken(c, "model.kv_heads",
                       "'model.kv_heads' %lld does not divide 'model.heads' %lld", kv_heads, heads);
}

void dt_rule_head_width(const dt_rule_case *c)
{
    long long given = c->recipe->model.head_width;
    long long width = given > 0 ? given : c->recipe->model.embed / c->recipe->model.heads;

    if (rotates(c->recipe) && width % 2 != 0)
        dt_rule_broken(c, given > 0 ? "model.head_width" : "model.heads",
                       "a head has width %lld, which rotary positions require to be even", width);
}

/* Requires model.ffn, and suggests the usual width. Published models mostly use four times the
 * stream's width, or about 8/3 of it with three matrices in the perceptron, for the same number
 * of parameters. */
void dt_rule_ffn(const dt_rule_case *c)
{
    bool three = rotates(c->recipe);
    long long embed = c->recipe->model.embed;
    long long usual = three ? (embed * 8 / 3 + 63) / 64 * 64 : 4 * embed;

    if (c->recipe->model.ffn == 0 && !dt_architecture_ignores(c->recipe->model.kind, "model.ffn") &&
        !dt_architecture_find(c->recipe->model.kind)->ffn_follows)
        dt_rule_broken(c, "model.ffn",
                       "'model.ffn' is missing (width inside the multi-layer perceptron): %s "
                       "'model.embed' is usual, here %lld",
                       three ? "8/3 of" : "4 times", usual);
}

void dt_rule_shared_embeddings(const dt_rule_case *c)
{
    long long source = c->recipe->model.source_vocab, target = c->recipe->model.vocab;

    if (c->recipe->model.shared_embeddings && source > 0 && target > 0 && source != target)
        dt_rule_broken(
            c, "model.shared_embeddings",
            "'model.shared_embeddings' requires one vocabulary, but 'model.source_vocab' is "
            "%lld, 'model.vocab' %lld",
            source, target);
}

void dt_rule_rope_factors(const dt_rule_case *c)
{
    if (c->recipe->model.rope_scaling == DT_ROPE_LLAMA3 &&
        c->recipe->model.rope_high_freq_factor <= c->recipe->model.rope_low_freq_factor)
        dt_rule_broken(
            c, "model.rope_high_freq_factor",
            "'model.rope_high_freq_factor' %g is not above 'model.rope_low_freq_factor' %g",
            c->recipe->model.rope_high_freq_factor, c->recipe->model.rope_low_freq_factor);
}

/* The message of the kind's check names the field first. */
void dt_rule_switches(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);
    dt_error err = DT_ERROR_INIT;
    dt_model_config config;
    const char *name;
    char path[64];

    if (kind->check_switches == NULL || c->recipe->model.heads == 0)
        return;
    dt_model_config_make(&config, c->recipe, DT_VOCAB_UNKNOWN);
    if (kind->check_switches(&config, &err) == DT_OK)
        return;
    name = strchr(err.message, '\'') + 1;
    snprintf(path, sizeof(path), "model.%.*s", (int)strcspn(name, "'"), name);
    dt_rule_broken(c, path, "%s", err.message);
    dt_error_clear(&err);
}

void dt_rule_family(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);
    const dt_published *family = kind->published;
    const char *wanted = c->recipe->model.family;

    if (wanted[0] == '\0' || dt_architecture_ignores(c->recipe->model.kind, "model.family"))
        return;
    while (family != NULL && family->model_type != NULL && strcmp(family->model_type, wanted) != 0)
        family++;
    if (family == NULL || family->model_type == NULL)
        dt_rule_broken(c, "model.family", "'model.family' is '%s', which kind '%s' does not have",
                       wanted, kind->name);
}

void dt_rule_rows(const dt_rule_case *c)
{
    if (!dt_architecture_find(c->recipe->model.kind)->reads_rows)
        return;
    if (c->recipe->model.inputs == 0)
        dt_rule_broken(c, "model.inputs",
                       "'model.inputs' is missing (number of input columns of a row)");
    if (c->recipe->model.outputs == 0)
        dt_rule_broken(c, "model.outputs",
                       "'model.outputs' is missing (number of classes, or of predicted numbers)");
}

void dt_rule_heads(const dt_rule_case *c)
{
    long long heads = c->recipe->model.heads, embed = c->recipe->model.embed;
    long long below = heads, above = heads;

    if (c->recipe->model.head_width > 0 || embed % heads == 0)
        return;
    while (below > 1 && embed % below != 0)
        below--;
    while (above < embed && embed % above != 0)
        above++;
    if (heads > embed)
        above = embed;
    if (below < above)
        dt_rule_broken(c, "model.heads",
                       "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that do "
                       "are %lld and %lld",
                       heads, embed, below, above);
    else
        dt_rule_broken(
            c, "model.heads",
            "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that does is "
            "%lld",
            heads, embed, above);
}

/* --- optimizer --- */

void dt_rule_nesterov(const dt_rule_case *c)
{
    if (c->recipe->optimizer.nesterov && c->recipe->optimizer.momentum == 0)
        dt_rule_broken(c, "optimizer.nesterov",
                       "'optimizer.nesterov' requires 'optimizer.momentum' above 0");
}

void dt_rule_adamw_lr(const dt_rule_case *c)
{
    const dt_optimizer_facts *facts = &dt_optimizers[c->recipe->optimizer.kind];

    if (c->recipe->optimizer.adamw_lr > 0 && !facts->whole_matrices)
        dt_rule_broken(c, "optimizer.adamw_lr",
                       "'optimizer.adamw_lr' and optimizer '%s' cannot be combined", facts->name);
}

void dt_rule_moments(const dt_rule_case *c)
{
    const dt_optimizer_facts *facts = &dt_optimizers[c->recipe->optimizer.kind];

    if (c->recipe->optimizer.moments == DT_MOMENTS_BF16 && !facts->bf16_states)
        dt_rule_broken(c, "optimizer.moments",
                       "'optimizer.moments' bf16 and optimizer '%s' cannot be combined",
                       facts->name);
}

/* --- schedule --- */

void dt_rule_length(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps == 0 && c->recipe->schedule.epochs == 0)
        dt_rule_broken(c, "schedule.steps",
                       "'schedule.steps' is missing (length of the whole run)");
}

void dt_rule_min_lr(const dt_rule_case *c)
{
    if (c->recipe->schedule.min_lr > c->recipe->optimizer.lr)
        dt_rule_broken(c, "schedule.min_lr", "'schedule.min_lr' %g is above 'optimizer.lr' %g",
                       c->recipe->schedule.min_lr, c->recipe->optimizer.lr);
}

void dt_rule_two_lengths(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps > 0 && c->recipe->schedule.epochs > 0)
        dt_rule_broken(c, "schedule.epochs",
                       "'schedule.steps' %lld and 'schedule.epochs' %lld are both set, and the run "
                       "ends with the shorter one",
                       (long long)c->recipe->schedule.steps, (long long)c->recipe->schedule.epochs);
}

void dt_rule_all_warmup(const dt_rule_case *c)
{
    long long steps = c->recipe->schedule.steps, warmup = c->recipe->schedule.warmup_steps;

    if (steps > 0 && warmup >= steps)
        dt_rule_broken(c, "schedule.warmup_steps",
                       "'schedule.warmup_steps' %lld %s 'schedule.steps' %lld: the run %s", warmup,
                       warmup > steps ? "is above" : "equals", steps,
                       warmup > steps ? "ends before the learning rate is reached"
                                      : "ends when the learning rate is reached");
}

void dt_rule_decay(const dt_rule_case *c)
{
    long long steps = c->recipe->schedule.steps, warmup = c->recipe->schedule.warmup_steps,
              decay = c->recipe->schedule.decay_steps;

    if (c->recipe->schedule.kind == DT_SCHEDULE_WARMUP_STABLE_DECAY && steps > 0 &&
        warmup <= steps && decay > steps - warmup)
        dt_rule_broken(c, "schedule.decay_steps",
                       "'schedule.decay_steps' %lld is above the %lld steps left after warm-up",
                       decay, steps - warmup);
}

/* --- the adapter */

/* Appends "q, k, v" of a kind. */
static void add_targets(dt_strbuf *out, const dt_architecture *kind)
{
    for (int i = 0; kind->targets[i].name != NULL; i++)
        dt_strbuf_add_fmt(out, "%s%s", i > 0 ? ", " : "", kind->targets[i].name);
}

void dt_rule_lora_targets(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);
    const dt_string_list *targets = &c->recipe->lora.targets;
    dt_strbuf names;

    if (c->recipe->lora.rank == 0 || kind->targets == NULL)
        return;
    dt_strbuf_init(&names);
    add_targets(&names, kind);
    for (int64_t i = 0; i < targets->count; i++)
        if (dt_lora_target_bits(kind, targets->items[i]) == 0)
            dt_rule_broken_item(c, "lora.targets", i,
                                "a model of kind '%s' has no '%s' ('lora.targets'): it has %s",
                                kind->name, targets->items[i], names.data);
    dt_strbuf_release(&names);
}

/* Returns the smallest side of a targeted matrix. */
static int64_t smallest_side(const dt_recipe *recipe)
{
    dt_model_config config;
    dt_lora_join join;
    int64_t least = INT64_MAX;

    dt_model_config_make(&config, recipe, recipe->model.vocab);
    config.tensor = (dt_tensor_place){0};
    for (int next = 0; dt_lora_join_next(&join, &config, &next);) {
        least = join.in < least ? join.in : least;
        for (int i = 0; i < join.count; i++)
            least = join.out[i] < least ? join.out[i] : least;
    }
    return least;
}

void dt_rule_lora(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    long long rank = recipe->lora.rank, least;

    if (rank == 0 && dt_reading_given(c->reading, "lora.rank"))
        return; /* turned off */
    if (rank == 0) {
        for (size_t i = 0; i < dt_fields_count; i++)
            if (dt_field_in_group(&dt_fields[i], "lora") &&
                strcmp(dt_fields[i].path, "lora.rank") != 0 &&
                dt_reading_written(c->reading, dt_fields[i].path)) {
                dt_rule_broken(c, dt_fields[i].path,
                               "'%s' has no effect without 'lora.rank': set a rank, such as 16",
                               dt_fields[i].path);
                return;
            }
        return;
    }
    if (dt_architecture_find(recipe->model.kind)->targets == NULL)
        return; /* the rule "model-fields" refuses it */
    if (recipe->model.from[0] == '\0')
        dt_rule_broken(c, "lora.rank",
                       "'lora' trains an adapter next to weights that stay as they are, and "
                       "'model.from' names none: set it, or leave 'lora' out");
    least = smallest_side(recipe);
    if (rank > least)
        dt_rule_broken(c, "lora.rank",
                       "'lora.rank' %lld is above %lld, the smallest side of a matrix with an "
                       "adapter: lower it",
                       rank, least);
    if (recipe->lora.dropout > 0 && recipe->tensor.size > 1)
        dt_rule_broken(c, "lora.dropout",
                       "'lora.dropout' and 'tensor' %lld cannot be combined: set one of them only",
                       (long long)recipe->tensor.size);
}

void dt_rule_dpo(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->dpo.beta == 0)
        return;
    if (recipe->data.format != DT_DATA_CHAT)
        dt_rule_broken(c, "dpo.beta",
                       "'dpo' trains on pairs of conversations: set 'data.format: chat'");
    if (recipe->lora.rank == 0)
        dt_rule_broken(c, "dpo.beta",
                       "'dpo' trains an adapter, whose base is the reference: set 'lora', such as "
                       "'lora: 16'");
    if (recipe->strategy.kind == DT_STRATEGY_DP)
        dt_rule_broken(c, "dpo.beta",
                       "'dpo' and 'strategy: dp' cannot be combined: use 'ddp' or 'fsdp'");
    if (recipe->data.too_long == DT_TOO_LONG_CUT)
        dt_rule_broken(c, "data.too_long",
                       "'dpo' and 'data.too_long: cut' cannot be combined: an answer that is cut "
                       "cannot be compared; use drop");
    if (recipe->data.loss == DT_MEAN_OF_CONVERSATIONS)
        dt_rule_broken(c, "data.loss",
                       "'data.loss: conversation' has no effect with 'dpo': a pair counts 1");
}

/* --- whether ranks can divide the layers */

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
