#include "runner/convert/convert_int.h"

#include <string.h>

#include "runner/convert/tool.h"

static void set_strategy(dt_draft *draft, const dt_flags *flags)
{
    const char *backend = dt_flags_text(flags, "--ddp-backend", "pytorch_ddp");
    const char *from = dt_flags_from(flags, "--ddp-backend");
    bool full = strcmp(backend, "fully_sharded") == 0;
    bool zero = strcmp(dt_flags_text(flags, "--zero-sharding", "none"), "os") == 0;

    dt_draft_word(draft, "strategy.kind", full || zero ? "fsdp" : "ddp", "%s",
                  full || !zero ? from : dt_flags_from(flags, "--zero-sharding"));
    if (zero && !full)
        dt_draft_word(draft, "strategy.shard", "optimizer", "%s",
                      dt_flags_from(flags, "--zero-sharding"));
    if (full)
        dt_draft_word(draft, "strategy.reshard_after_forward",
                      dt_flags_given(flags, "--no-reshard-after-forward") ? "false" : "true",
                      "%s--no-reshard-after-forward",
                      dt_flags_given(flags, "--no-reshard-after-forward") ? "" : "without ");
    else if (dt_flags_given(flags, "--no-reshard-after-forward"))
        dt_draft_left(draft, "--no-reshard-after-forward",
                      "it has no effect without --ddp-backend fully_sharded");
    if (dt_flags_given(flags, "--fp32-reduce-scatter"))
        dt_draft_word(draft, "strategy.reduce_dtype", "fp32", "--fp32-reduce-scatter");
    if (dt_flags_given(flags, "--bucket-cap-mb") && !full && !zero)
        dt_flags_set_number(draft, flags, "strategy.bucket_mb", "--bucket-cap-mb", 25);
    if (strcmp(backend, "slow_mo") == 0 || strcmp(backend, "slowmo") == 0)
        dt_draft_left(draft, from, "ranks agree at every step");
    if (dt_flags_given(flags, "--checkpoint-activations") ||
        dt_flags_given(flags, "--offload-activations"))
        dt_draft_word(draft, "activation_checkpointing", "full", "%s",
                      dt_flags_given(flags, "--checkpoint-activations") ? "--checkpoint-activations"
                                                                        : "--offload-activations");
    if (dt_flags_given(flags, "--offload-activations"))
        dt_draft_left(draft, "--offload-activations", "saved activations stay on the device");
}

static dt_status check_language_model(const dt_flags *flags, dt_draft *draft, dt_error *err)
{
    const char *task = dt_flags_text(flags, "--task", NULL);
    const char *criterion = dt_flags_text(flags, "--criterion", "cross_entropy");

    if (task == NULL)
        dt_draft_note(draft, "--task", "it is missing; language_modeling is assumed");
    else if (strcmp(task, "language_modeling") != 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unsupported --task %s (expected language_modeling or translation)", task);
    if (strcmp(criterion, "cross_entropy") == 0 && dt_flags_given(flags, "--criterion"))
        dt_draft_same(draft, dt_flags_about(flags, "--criterion"), "dtrun always uses this loss");
    else if (strcmp(criterion, "cross_entropy") != 0)
        dt_draft_left(draft, dt_flags_about(flags, "--criterion"),
                      "the loss is cross_entropy, over all of the vocabulary");
    return DT_OK;
}

/* Converts the model, the data and the batches of the task. */
static dt_status set_subject(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                             dt_error *err)
{
    dt_status st = DT_OK;

    if (dt_fairseq_is_pairs(flags)) {
        DT_TRY(dt_fairseq_pairs_model(draft, flags, err));
        dt_fairseq_pairs_data(draft, flags);
        return dt_fairseq_pairs_batch(step_tokens, draft, flags, err);
    }
    DT_TRY(check_language_model(flags, draft, err));
    DT_TRY(dt_fairseq_model(draft, flags, err));
    dt_fairseq_data(draft, flags);
    DT_TRY(dt_fairseq_batch(step_tokens, draft, flags, err));
out:
    return st;
}

static dt_status set_devices(dt_draft *draft, const dt_flags *flags, dt_launcher *launcher,
                             dt_error *err)
{
    int64_t nodes = launcher->nodes > 0 ? launcher->nodes : 1;
    double total = dt_flags_number(flags, "--distributed-world-size", 0);

    if (total > 0 && dt_launcher_devices(launcher) == 0) {
        launcher->per_node = (int64_t)total / nodes;
        launcher->from = dt_flags_from(flags, "--distributed-world-size");
    }
    if (dt_launcher_carry(launcher, draft, err) != DT_OK)
        return err->code;
    if (dt_flags_given(flags, "--cpu"))
        dt_draft_word(draft, "gpus", "none", "--cpu");
    return DT_OK;
}

static dt_status convert(dt_draft *draft, const dt_launcher *launched, const char *folder,
                         dt_error *err)
{
    dt_launcher launcher = *launched;
    double step_tokens, lr, clip;
    dt_status st = DT_OK;
    dt_flags flags;

    (void)folder;
    DT_TRY(dt_flags_read(&flags, &dt_fairseq_flags, launcher.words, launcher.count, draft, err));
    DT_TRY(set_devices(draft, &flags, &launcher, err));
    DT_TRY(set_subject(&step_tokens, draft, &flags, err));
    set_strategy(draft, &flags);
    dt_fairseq_precision(draft, &flags, &launcher, step_tokens);
    DT_TRY(dt_fairseq_optimizer(draft, &flags, err));
    DT_TRY(dt_fairseq_first(&lr, &flags, "--lr", 0.25, err));
    dt_draft_number(draft, "optimizer.lr", lr, "%s", dt_flags_from(&flags, "--lr"));
    dt_fairseq_schedule(draft, &flags);
    DT_TRY(dt_fairseq_length(draft, &flags, err));
    clip = dt_flags_number(&flags, "--clip-norm", 0);
    dt_draft_number(draft, "clip", clip, "%s", dt_flags_from(&flags, "--clip-norm"));
    dt_flags_set_number(draft, &flags, "seed", "--seed", 1);
    dt_fairseq_evaluation(draft, &flags);
    dt_fairseq_checkpoints(draft, &flags);
    dt_fairseq_bleu(draft, &flags);
    dt_flags_set_number(draft, &flags, "log.every", "--log-interval", 100);
    dt_flags_carry(&flags);
out:
    return st;
}

static bool has(const dt_launcher *launcher, const char *word)
{
    for (size_t i = 0; i < launcher->count; i++)
        if (strcmp(launcher->words[i].text, word) == 0)
            return true;
    return false;
}

/* Older versions of fairseq are called train.py, as nanoGPT is. */
/* Many programs are called train.py: it is fairseq's in its folders, or if the user says so. */
static bool knows(const dt_launcher *launcher)
{
    const char *program = launcher->program, *name = dt_launcher_name(program);

    if (strcmp(name, "fairseq-train") == 0 || strcmp(program, "fairseq_cli.train") == 0)
        return true;
    if (strcmp(name, "train.py") != 0)
        return false;
    return strstr(program, "fairseq_cli/train.py") != NULL ||
           strstr(program, "fairseq/train.py") != NULL ||
           (launcher->named &&
            (has(launcher, "--arch") || has(launcher, "-a") || has(launcher, "--task")));
}

const dt_convert_tool dt_tool_fairseq = {.name = "fairseq",
                                         .what = "fairseq-train command",
                                         .flags = &dt_fairseq_flags,
                                         .knows = knows,
                                         .convert = convert};
