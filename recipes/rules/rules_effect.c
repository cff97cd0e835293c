/* rules_effect: adds violations of rules to the problems, and warns of fields without effect
 * (recipes/rules/rules.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "recipes/rules/rules.h"

/* --- violations */

static dt_problem *add(const dt_rule_case *c)
{
    const dt_reading *reading = c->reading;
    dt_problem *problem =
        dt_problems_add(reading->problems, reading->err, c->rule->name, c->rule->warning,
                        reading->origins->sources, reading->origins->sources_count);

    dt_error_clear(reading->err);
    if (problem != NULL && c->rule->secret)
        problem->line = NULL;
    return problem;
}

void dt_rule_fault(const dt_rule_case *c, dt_status st)
{
    if (st == DT_ERR_RECIPE)
        (void)add(c);
    else if (*c->st == DT_OK)
        *c->st = st;
}

/* Reports a violation at the mark of the path; index -1: of the whole field. */
static void broken(const dt_rule_case *c, const char *path, int64_t index, const char *fmt,
                   va_list args)
{
    dt_error *err = c->reading->err;
    char message[sizeof(err->message)];
    dt_problem *problem;

    vsnprintf(message, sizeof(message), fmt, args);
    DT_FAIL(err, DT_ERR_RECIPE, "%s%s%s", message, c->rule->remedy != NULL ? ": " : "",
            c->rule->remedy != NULL ? c->rule->remedy : "");
    dt_text_mark_prefix(err, dt_reading_item_mark(c->reading, path, index));
    problem = add(c);
    if (problem != NULL)
        problem->absent = !dt_reading_given(c->reading, path);
}

void dt_rule_broken(const dt_rule_case *c, const char *path, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    broken(c, path, -1, fmt, args);
    va_end(args);
}

void dt_rule_broken_item(const dt_rule_case *c, const char *path, int64_t index, const char *fmt,
                         ...)
{
    va_list args;

    va_start(args, fmt);
    broken(c, path, index, fmt, args);
    va_end(args);
}

/* --- fields without effect */

static bool steps_by_momentum(const dt_recipe *r)
{
    return dt_optimizers[r->optimizer.kind].needs_momentum ||
           dt_optimizers[r->optimizer.kind].whole_matrices;
}

static bool has_betas(const dt_recipe *r)
{
    return !dt_optimizers[r->optimizer.kind].needs_momentum;
}

static bool steps_matrices(const dt_recipe *r)
{
    return dt_optimizers[r->optimizer.kind].whole_matrices;
}

static bool is_polynomial(const dt_recipe *r)
{
    return r->schedule.kind == DT_SCHEDULE_POLYNOMIAL;
}

static bool is_cosine(const dt_recipe *r)
{
    return r->schedule.kind == DT_SCHEDULE_COSINE;
}

static bool is_decaying(const dt_recipe *r)
{
    return r->schedule.kind == DT_SCHEDULE_WARMUP_STABLE_DECAY;
}

static bool warms_up(const dt_recipe *r)
{
    return r->schedule.warmup_steps > 0;
}

static bool is_fp16(const dt_recipe *r)
{
    return r->precision.kind == DT_PRECISION_FP16;
}

static bool is_fp32(const dt_recipe *r)
{
    return r->precision.kind == DT_PRECISION_FP32;
}

static bool is_ddp(const dt_recipe *r)
{
    return r->strategy.kind == DT_STRATEGY_DDP;
}

static bool is_fsdp(const dt_recipe *r)
{
    return r->strategy.kind == DT_STRATEGY_FSDP;
}

static bool shards_all(const dt_recipe *r)
{
    return is_fsdp(r) && r->strategy.shard == DT_SHARD_FULL;
}

static bool divides_layers(const dt_recipe *r)
{
    return r->tensor.size > 1;
}

static bool saves_epochs(const dt_recipe *r)
{
    return r->checkpoint.every_epoch > 0;
}

static bool stretches(const dt_recipe *r)
{
    return r->model.rope_scaling != DT_ROPE_NONE;
}

static bool stretches_long_waves(const dt_recipe *r)
{
    return r->model.rope_scaling == DT_ROPE_LLAMA3;
}

static bool has_original_tokens(const dt_recipe *r)
{
    return r->model.rope_scaling >= DT_ROPE_LLAMA3;
}

static bool is_yarn(const dt_recipe *r)
{
    return r->model.rope_scaling == DT_ROPE_YARN;
}

static bool is_longrope(const dt_recipe *r)
{
    return r->model.rope_scaling == DT_ROPE_LONGROPE;
}

static bool is_yarn_or_longrope(const dt_recipe *r)
{
    return is_yarn(r) || is_longrope(r);
}

static bool has_window(const dt_recipe *r)
{
    return r->model.window > 0;
}

static bool norms_heads(const dt_recipe *r)
{
    return r->model.qk_norm;
}

static bool tells_documents_apart(const dt_recipe *r)
{
    return dt_recipe_separates(r);
}

static bool is_chat(const dt_recipe *r)
{
    return r->data.format == DT_DATA_CHAT;
}

static bool is_no_chat(const dt_recipe *r)
{
    return !is_chat(r);
}

static bool measures_length(const dt_recipe *r)
{
    return is_chat(r) || r->data.too_long == DT_TOO_LONG_CUT || /* the rule 'chat' refuses it */
           r->data.tokens == DT_TOKENS_PAIRS || r->data.source[0] != '\0';
}

static bool ends_documents(const dt_recipe *r)
{
    bool plain = strcmp(r->data.tokenizer, "") == 0 || strcmp(r->data.tokenizer, "char") == 0 ||
                 strcmp(r->data.tokenizer, "byte") == 0;

    return !r->data.cross_documents || !plain;
}

static bool has_samples(const dt_recipe *r)
{
    return r->evaluate.samples.count > 0;
}

static bool draws_samples(const dt_recipe *r)
{
    return has_samples(r) && r->evaluate.samples_temperature > 0;
}

/* Fields that have an effect only under a condition; else: "'PATH' has no effect WHERE". */
static const struct {
    const char *path;
    bool (*counts)(const dt_recipe *);
    const char *where;
} fields[] = {
    {"optimizer.momentum", steps_by_momentum, "with this optimizer, only with sgd and muon"},
    {"optimizer.nesterov", steps_by_momentum, "with this optimizer, only with sgd and muon"},
    {"optimizer.adjust_lr", steps_matrices, "with this optimizer, only with muon"},
    {"optimizer.beta1", has_betas, "on sgd"},
    {"optimizer.beta2", has_betas, "on sgd"},
    {"optimizer.eps", has_betas, "on sgd"},
    {"schedule.power", is_polynomial, "with this schedule, only with 'polynomial'"},
    {"schedule.period_steps", is_cosine, "with this schedule, only with 'cosine'"},
    {"schedule.period_mult", is_cosine, "with this schedule, only with 'cosine'"},
    {"schedule.shrink", is_cosine, "with this schedule, only with 'cosine'"},
    {"schedule.decay_steps", is_decaying, "with this schedule, only with 'warmup_stable_decay'"},
    {"schedule.warmup_init_lr", warms_up, "without 'schedule.warmup_steps'"},
    {"precision.loss_scale", is_fp16, "without 'precision: fp16'"},
    {"precision.scale_window", is_fp16, "without 'precision: fp16'"},
    {"precision.min_loss_scale", is_fp16, "without 'precision: fp16'"},
    {"precision.tf32", is_fp32, "without 'precision: fp32'"},
    {"strategy.bucket_mb", is_ddp, "without 'strategy: ddp'"},
    {"strategy.first_bucket_mb", is_ddp, "without 'strategy: ddp'"},
    {"strategy.shard", is_fsdp, "without 'strategy: fsdp'"},
    {"strategy.reduce_each_micro_step", is_fsdp, "without 'strategy: fsdp'"},
    {"strategy.reshard_after_forward", shards_all, "without 'strategy: fsdp' and 'shard: full'"},
    {"tensor.across_nodes", divides_layers, "without 'tensor.size'"},
    {"model.rope_factor", stretches, "without 'model.rope_scaling'"},
    {"model.rope_low_freq_factor", stretches_long_waves, "without 'rope_scaling: llama3'"},
    {"model.rope_high_freq_factor", stretches_long_waves, "without 'rope_scaling: llama3'"},
    {"model.rope_original_tokens", has_original_tokens,
     "without 'rope_scaling' by llama3, yarn, longrope or dynamic"},
    {"model.rope_attention_factor", is_yarn_or_longrope,
     "without 'rope_scaling: yarn' or 'longrope'"},
    {"model.rope_beta_fast", is_yarn, "without 'rope_scaling: yarn'"},
    {"model.rope_beta_slow", is_yarn, "without 'rope_scaling: yarn'"},
    {"model.rope_mscale", is_yarn, "without 'rope_scaling: yarn'"},
    {"model.rope_mscale_all", is_yarn, "without 'rope_scaling: yarn'"},
    {"model.rope_truncate", is_yarn, "without 'rope_scaling: yarn'"},
    {"model.rope_short_factors", is_longrope, "without 'rope_scaling: longrope'"},
    {"model.rope_long_factors", is_longrope, "without 'rope_scaling: longrope'"},
    {"model.rope_local_theta", has_window, "without 'model.window'"},
    {"model.window_layers", has_window, "without 'model.window'"},
    {"model.qk_norm_whole", norms_heads, "without 'model.qk_norm'"},
    {"data.cross_documents", is_no_chat, "with 'format: chat', which separates conversations"},
    {"data.field", is_no_chat, "with 'format: chat', whose text is in messages"},
    {"data.pack", tells_documents_apart, "without 'cross_documents: false' or 'format: chat'"},
    {"data.chat_template", is_chat, "without 'format: chat'"},
    {"data.loss", is_chat, "without 'format: chat'"},
    {"data.too_long", measures_length, "without 'format: chat' or sentence pairs"},
    {"data.end_of_text", ends_documents,
     "without 'cross_documents: false' or a tokenizer of a file"},
    {"evaluate.samples_tokens", has_samples, "without 'evaluate.samples'"},
    {"evaluate.samples_temperature", has_samples, "without 'evaluate.samples'"},
    {"evaluate.samples_top_k", draws_samples, "without a 'samples_temperature' above 0"},
    {"evaluate.samples_top_p", draws_samples, "without a 'samples_temperature' above 0"},
    {"evaluate.samples_seed", draws_samples, "without a 'samples_temperature' above 0"},
    {"checkpoint.keep_epochs", saves_epochs, "without 'checkpoint.every_epoch'"},
};

void dt_rule_no_effect(const dt_rule_case *c)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (dt_reading_written(c->reading, fields[i].path) &&
            !c->reading->troubled[dt_reading_row(fields[i].path)] && !fields[i].counts(c->recipe))
            dt_rule_broken(c, fields[i].path, "'%s' has no effect %s", fields[i].path,
                           fields[i].where);
}
