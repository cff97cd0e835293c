/* rules: defines the table of rules across the fields of a recipe.
 *
 * validate, launch, resume and all other readers of recipes use this table: name, severity, text, fields,
 * condition and remedy of each rule. `dtrun validate --sarif` and docs/recipe.md list it.
 *
 * Adding a rule: a row in rules.c, its condition in the rules_*.c of its subject, a wrong recipe in
 * tests/recipes/wrong/. Recipes that were accepted stay accepted: a new rule about them is a warning.
 *
 * A rule is skipped if one of its fields is troubled (reading.h). Warnings are given only for fields that the
 * recipe itself sets, not for those of an earlier attempt.
 */
#ifndef DT_RECIPES_RULES_RULES_H
#define DT_RECIPES_RULES_RULES_H

#include "recipes/read/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_RULE_FIELDS 6

typedef struct dt_rule_case {
    const struct dt_rule *rule;
    const dt_reading *reading;
    const dt_recipe *recipe;
    dt_status *st;
} dt_rule_case;

typedef struct dt_rule {
    const char *name; /* "heads-divide-embed" */
    bool warning;
    const char *says;                   /* one sentence, no full stop */
    const char *fields[DT_RULE_FIELDS]; /* paths; NULL: the end */
    /* Calls dt_rule_broken for each violation. */
    void (*look)(const dt_rule_case *c);
    const char *remedy; /* appended to the message after a colon; NULL: part of the message */
    bool asks;          /* `look` itself checks which fields the recipe sets */
    bool secret;        /* the value may be a secret: its line is not shown */
    bool of_tasks;      /* checked too if the task is not training */
} dt_rule;

extern const dt_rule dt_rules[];
extern const size_t dt_rules_count;

/* Reports a violation at the field, or at the map that lacks the field. */
void dt_rule_broken(const dt_rule_case *c, const char *path, const char *fmt, ...) DT_PRINTF(3, 4);
/* Reports a violation at an item of a list. */
void dt_rule_broken_item(const dt_rule_case *c, const char *path, int64_t index, const char *fmt,
                         ...) DT_PRINTF(4, 5);
/* Reports the error recorded in reading->err as a violation of this rule. */
void dt_rule_fault(const dt_rule_case *c, dt_status st);

/* Conditions, by subject: rules_run.c, rules_model.c, rules_data.c, rules_effect.c,
 * rules_command.c. */
void dt_rule_name(const dt_rule_case *c);
void dt_rule_nodes(const dt_rule_case *c);
void dt_rule_nodes_min(const dt_rule_case *c);
void dt_rule_dp_nodes(const dt_rule_case *c);
void dt_rule_slurm_options(const dt_rule_case *c);
void dt_rule_early_stop(const dt_rule_case *c);
void dt_rule_search_nodes(const dt_rule_case *c);
void dt_rule_launcher_lost(const dt_rule_case *c);
void dt_rule_webhook(const dt_rule_case *c);
void dt_rule_task(const dt_rule_case *c);
void dt_rule_generate(const dt_rule_case *c);
void dt_rule_command(const dt_rule_case *c);
void dt_rule_processes(const dt_rule_case *c);
void dt_rule_env(const dt_rule_case *c);
void dt_rule_output_metrics(const dt_rule_case *c);
void dt_rule_collect(const dt_rule_case *c);
void dt_rule_checkpoints(const dt_rule_case *c);
void dt_rule_args(const dt_rule_case *c);
void dt_rule_tensor(const dt_rule_case *c);
void dt_rule_within(const dt_rule_case *c);
void dt_rule_model_fields(const dt_rule_case *c);
void dt_rule_rows(const dt_rule_case *c);
void dt_rule_batch_total(const dt_rule_case *c);
void dt_rule_batch_nodes(const dt_rule_case *c);
void dt_rule_mixture(const dt_rule_case *c);
void dt_rule_mixture_names(const dt_rule_case *c);
void dt_rule_mixture_kind(const dt_rule_case *c);
void dt_rule_pairs(const dt_rule_case *c);
void dt_rule_chat(const dt_rule_case *c);
void dt_rule_heads(const dt_rule_case *c);
void dt_rule_preset_kind(const dt_rule_case *c);
void dt_rule_kv_heads(const dt_rule_case *c);
void dt_rule_end_ids(const dt_rule_case *c);
void dt_rule_attention_biases(const dt_rule_case *c);
void dt_rule_head_width(const dt_rule_case *c);
void dt_rule_ffn(const dt_rule_case *c);
void dt_rule_shared_embeddings(const dt_rule_case *c);
void dt_rule_rope_factors(const dt_rule_case *c);
void dt_rule_family(const dt_rule_case *c);
void dt_rule_switches(const dt_rule_case *c);
void dt_rule_length(const dt_rule_case *c);
void dt_rule_min_lr(const dt_rule_case *c);
void dt_rule_nesterov(const dt_rule_case *c);
void dt_rule_adamw_lr(const dt_rule_case *c);
void dt_rule_moments(const dt_rule_case *c);
void dt_rule_urls(const dt_rule_case *c);
void dt_rule_split(const dt_rule_case *c);
void dt_rule_two_lengths(const dt_rule_case *c);
void dt_rule_all_warmup(const dt_rule_case *c);
void dt_rule_decay(const dt_rule_case *c);
void dt_rule_batch(const dt_rule_case *c);
void dt_rule_epoch_evaluation(const dt_rule_case *c);
void dt_rule_samples(const dt_rule_case *c);
void dt_rule_best(const dt_rule_case *c);
void dt_rule_best_by(const dt_rule_case *c);
void dt_rule_late(const dt_rule_case *c);
void dt_rule_own_validation(const dt_rule_case *c);
void dt_rule_glob(const dt_rule_case *c);
void dt_rule_jsonl(const dt_rule_case *c);
void dt_rule_weights_tokens(const dt_rule_case *c);
void dt_rule_lora(const dt_rule_case *c);
void dt_rule_dpo(const dt_rule_case *c);
void dt_rule_lora_targets(const dt_rule_case *c);
void dt_rule_no_effect(const dt_rule_case *c);

#ifdef __cplusplus
}
#endif
#endif
