/* rules_model: checks rules about the model, the optimizer and the schedule (recipes/rules/rules.h). */
#include <math.h>
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/rules/rules.h"

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
