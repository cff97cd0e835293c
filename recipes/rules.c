#include "recipes/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* clang-format off: one paragraph a rule */
const dt_rule dt_rules[] = {
    {.name = "name",
     .says = "a name can be typed in commands and names folders",
     .fields = {"name"},
     .look = dt_rule_name},
    {.name = "nodes",
     .says = "every node is one that dtrun can speak to, and this machine is named once",
     .fields = {"nodes"},
     .look = dt_rule_nodes},
    {.name = "nodes-min",
     .says = "as many nodes as are needed are named",
     .fields = {"nodes_min", "nodes"},
     .look = dt_rule_nodes_min},
    {.name = "dp-one-node",
     .says = "dp trains on one node",
     .fields = {"strategy.kind", "nodes"},
     .look = dt_rule_dp_nodes,
     .remedy = "with several nodes take 'ddp'"},
    {.name = "tensor",
     .says = "tensor parallel comes with a later dtrun",
     .fields = {"tensor"},
     .look = dt_rule_tensor},
    {.name = "slurm-options",
     .says = "options of sbatch leave what dtrun sets itself alone",
     .fields = {"slurm.options"},
     .look = dt_rule_slurm_options},
    {.name = "model-fields",
     .says = "a model is given only what its kind has",
     .fields = {"model.kind"},
     .look = dt_rule_model_fields},
    {.name = "rows",
     .says = "a model on rows says what goes in and what comes out",
     .fields = {"model.kind", "model.inputs", "model.outputs"},
     .look = dt_rule_rows},
    {.name = "heads-divide-embed",
     .says = "attention heads divide the width of the model",
     .fields = {"model.heads", "model.embed"},
     .look = dt_rule_heads},
    {.name = "length",
     .says = "a run has a length",
     .fields = {"schedule.steps", "schedule.epochs"},
     .look = dt_rule_length,
     .remedy = "give it, or 'schedule.epochs'"},
    {.name = "warmup",
     .says = "warm-up ends within the run",
     .fields = {"schedule.warmup_steps", "schedule.steps"},
     .look = dt_rule_warmup},
    {.name = "min-lr",
     .says = "the lowest learning rate is not above the highest",
     .fields = {"schedule.min_lr", "optimizer.lr"},
     .look = dt_rule_min_lr},
    {.name = "nesterov",
     .says = "Nesterov's momentum needs a momentum",
     .fields = {"optimizer.nesterov", "optimizer.momentum", "optimizer.kind"},
     .look = dt_rule_nesterov},
    {.name = "adamw-lr",
     .says = "a rate for AdamW's part is for an optimizer that has such a part",
     .fields = {"optimizer.adamw_lr", "optimizer.kind"},
     .look = dt_rule_adamw_lr,
     .remedy = "set 'optimizer.lr'"},
    {.name = "launcher-lost",
     .says = "what nodes do without the launch machine is one of two things",
     .fields = {"failure.launcher_lost"},
     .look = dt_rule_launcher_lost},
    {.name = "webhook",
     .says = "a webhook is a URL that holds no secret",
     .fields = {"notify.webhook"},
     .look = dt_rule_webhook,
     .secret = true},
    {.name = "data-url",
     .says = "data by URL have a digest, and their URL holds no secret",
     .fields = {"data.train", "data.validation"},
     .look = dt_rule_urls,
     .secret = true},
    {.name = "split-or-files",
     .says = "validation is by files or by a split",
     .fields = {"data.split", "data.validation"},
     .look = dt_rule_split,
     .remedy = "keep one"},

    {.name = "two-lengths",
     .warning = true,
     .says = "steps and epochs both say how long the run is",
     .fields = {"schedule.epochs", "schedule.steps"},
     .look = dt_rule_two_lengths,
     .remedy = "keep one, unless that is meant"},
    {.name = "all-warmup",
     .warning = true,
     .says = "a warm-up that is as long as the run leaves nothing to train at the full rate",
     .fields = {"schedule.warmup_steps", "schedule.steps"},
     .look = dt_rule_all_warmup,
     .remedy = "warm up for less, or train for longer"},
    {.name = "decay-over-warmup",
     .warning = true,
     .says = "warm-up and decay both fit into the run",
     .fields = {"schedule.decay_steps", "schedule.warmup_steps", "schedule.steps", "schedule.kind"},
     .look = dt_rule_decay,
     .remedy = "shorten one of them"},
    {.name = "batch-evaluation",
     .warning = true,
     .says = "an evaluation gives every rank of the named nodes a sequence",
     .fields = {"evaluate.sequences", "ranks", "nodes"},
     .look = dt_rule_batch,
     .remedy = "give it a multiple of them"},
    {.name = "best-of-nothing",
     .warning = true,
     .says = "the best checkpoint is kept by evaluations during the run",
     .fields = {"checkpoint.keep_best", "evaluate.every", "schedule.steps", "data.split",
                "data.validation"},
     .look = dt_rule_best,
     .remedy = "set 'evaluate.every' and data to validate on, or leave it out"},
    {.name = "too-late",
     .warning = true,
     .says = "what is done every so many steps is done before the run ends",
     .fields = {"schedule.steps", "schedule.epochs", "evaluate.every", "checkpoint.every",
                "log.every"},
     .look = dt_rule_late,
     .remedy = "give a smaller number, or 0 if that is meant"},
    {.name = "validates-on-training",
     .warning = true,
     .says = "the files to validate on are not those that are learned from",
     .fields = {"data.validation", "data.train"},
     .look = dt_rule_own_validation,
     .remedy = "the validation loss then says nothing of other text"},
    {.name = "glob-takes-validation",
     .warning = true,
     .says = "a pattern of training files leaves the validation files out",
     .fields = {"data.train", "data.validation"},
     .look = dt_rule_glob,
     .remedy = "narrow the pattern, or move the file"},
    {.name = "jsonl-as-text",
     .warning = true,
     .says = "JSON lines are not learned as if they were text",
     .fields = {"data.train", "data.tokens", "model.kind"},
     .look = dt_rule_jsonl,
     .remedy = "take the text out of it first, or say 'tokens: char' if that is meant"},
    {.name = "no-effect",
     .warning = true,
     .says = "what is written has an effect",
     .fields = {"optimizer.kind", "schedule.kind", "precision.kind", "strategy.kind",
                "strategy.shard"},
     .look = dt_rule_no_effect,
     .asks = true,
     .remedy = "remove it"},
};
/* clang-format on */

const size_t dt_rules_count = sizeof(dt_rules) / sizeof(dt_rules[0]);

/* Whether there is something to ask it about. */
static bool applies(const dt_rule *rule, const dt_reading *reading)
{
    bool written = false;

    for (int i = 0; i < DT_RULE_FIELDS && rule->fields[i] != NULL; i++) {
        if (reading->troubled[dt_reading_row(rule->fields[i])])
            return false;
        written = written || dt_reading_written(reading, rule->fields[i]);
    }
    return written || !rule->warning || rule->asks || reading->resolved == NULL;
}

dt_status dt_reading_check(const dt_reading *reading)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < dt_rules_count; i++) {
        const dt_rule_case c = {&dt_rules[i], reading, reading->recipe, &st};

        if (st == DT_OK && applies(&dt_rules[i], reading))
            dt_rules[i].look(&c);
    }
    return st;
}
