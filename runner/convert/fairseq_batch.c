/* fairseq_batch: converts batch, length and precision of a fairseq-train command line. */
#include <math.h>
#include <stdlib.h>

#include "runner/convert/fairseq.h"

/* Uses the smaller of --batch-size and --max-tokens, rounded down to the multiple if it is larger. */
static double sequences_of(const dt_flags *flags, double tokens, const char **from)
{
    double most = dt_flags_number(flags, "--max-tokens", 0);
    double given = dt_flags_number(flags, "--batch-size", 0);
    double multiple = dt_flags_number(flags, "--required-batch-size-multiple", 8);
    double fits = floor(most / tokens);

    *from = dt_flags_from(flags, "--batch-size");
    if (most <= 0 || (given > 0 && given <= fits))
        return given;
    *from = dt_flags_from(flags, "--max-tokens");
    if (multiple > 1 && fits > multiple)
        fits -= fmod(fits, multiple);
    return fits > 0 ? fits : 1;
}

/* *step_tokens: tokens of one rank in a step. */
dt_status dt_fairseq_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                           dt_error *err)
{
    double tokens = dt_flags_number(flags, "--tokens-per-sample", 1024), sequences, accumulate;
    const char *from;
    dt_status st = dt_fairseq_first(&accumulate, flags, "--update-freq", 1, err);

    if (st != DT_OK)
        return st;
    dt_flags_set_number(draft, flags, "batch.tokens", "--tokens-per-sample", 1024);
    if (tokens < 1)
        return DT_FAIL(err, DT_ERR_USAGE, "--tokens-per-sample: expected 1 or more");
    sequences = sequences_of(flags, tokens, &from);
    if (sequences > 0)
        dt_draft_number(draft, "batch.sequences", sequences, "%s", from);
    else
        dt_draft_note(
            draft, "--batch-size",
            "neither this flag nor --max-tokens is given: 'batch.sequences' is dtrun's default");
    dt_draft_number(draft, "batch.accumulate", accumulate, "%s",
                    dt_flags_from(flags, "--update-freq"));
    *step_tokens = (sequences > 0 ? sequences : 8) * tokens * accumulate;
    return DT_OK;
}

/* Checks that the passes over shards are whole: an epoch of fairseq is one shard, DATA1:DATA2:.... */
static dt_status check_shards(double *shards, const dt_flags *flags, double epochs, dt_error *err)
{
    const char *folder = flags->operands.count > 0 ? flags->operands.words[0].text : "";

    *shards = 1;
    for (const char *c = folder; *c != '\0'; c++)
        *shards += *c == ':' && c[1] != '\0';
    if (fmod(epochs, *shards) != 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--max-epoch %.0f: an epoch of fairseq is one of the %.0f shards, so that "
                       "%.0f epochs are not whole passes: give a multiple, or --max-update",
                       epochs, *shards, epochs);
    return DT_OK;
}

/* Shortens a warm-up that is longer than the run: the rate rises in the same way until the end. */
static void shorten_warmup(dt_draft *draft, const dt_flags *flags, double steps)
{
    const dt_draft_value *warmup = dt_draft_find(draft, "schedule.warmup_steps");
    const dt_draft_value *lr = dt_draft_find(draft, "optimizer.lr"),
                         *init = dt_draft_find(draft, "schedule.warmup_init_lr");
    double length = warmup != NULL ? strtod(warmup->yaml, NULL) : 0,
           first = init != NULL ? strtod(init->yaml, NULL) : 0, rate;

    if (steps <= 0 || length <= steps || lr == NULL)
        return;
    rate = first + (strtod(lr->yaml, NULL) - first) * steps / length;
    dt_draft_note(draft, dt_flags_about(flags, "--warmup-updates"),
                  "the warm-up is longer than the run: the rate only rises, to %g", rate);
    dt_draft_number(draft, "optimizer.lr", rate, "%s, at the end of %.0f of %.0f steps of warm-up",
                    lr->from, steps, length);
    dt_draft_number(draft, "schedule.warmup_steps", steps, "%s, %s", warmup->from,
                    dt_flags_from(flags, "--max-update"));
}

dt_status dt_fairseq_length(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    dt_status st;
    double shards;

    double steps = dt_flags_number(flags, "--max-update", 0);
    double epochs = dt_flags_number(flags, "--max-epoch", 0);
    double hours = dt_flags_number(flags, "--stop-time-hours", 0);

    if ((st = check_shards(&shards, flags, epochs, err)) != DT_OK)
        return st;
    if (steps > 0)
        dt_flags_set_number(draft, flags, "schedule.steps", "--max-update", steps);
    if (epochs > 0)
        dt_draft_number(draft, "schedule.epochs", epochs / shards, "%s%s",
                        dt_flags_from(flags, "--max-epoch"),
                        shards > 1 ? ", of which each is one shard of the data" : "");
    if (hours > 0)
        dt_draft_number(draft, "time_limit", hours * 3600, "%s",
                        dt_flags_from(flags, "--stop-time-hours"));
    shorten_warmup(draft, flags, steps);
    if (steps > 0 || epochs > 0)
        return DT_OK;
    dt_draft_number(draft, "schedule.epochs", 1, "neither --max-update nor --max-epoch is given");
    dt_draft_note(draft, "--max-update",
                  "neither this flag nor --max-epoch is given, and fairseq then trains until it is "
                  "stopped: set 'schedule.steps' or 'schedule.epochs'");
    return DT_OK;
}

/* Converts the loss scale: fairseq multiplies the sum of the loss over a batch, dtrun the mean over
 * all tokens of a step. */
static void set_loss_scale(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                           double step_tokens, double accumulate)
{
    /* ranks that read different samples */
    double divided = fmax(dt_flags_number(flags, "--model-parallel-size", 1), 1);
    double world = floor((double)dt_launcher_world(launcher) / divided), most = 4294967296.0;
    double tokens = step_tokens * (world > 0 ? world : 1), window;
    double scale = dt_flags_number(flags, "--fp16-init-scale", 128) * tokens;

    dt_draft_number(draft, "precision.loss_scale", scale < most ? scale : most,
                    "%s, times %.0f tokens of a step", dt_flags_from(flags, "--fp16-init-scale"),
                    tokens);
    if (scale > most)
        dt_draft_left(
            draft, dt_flags_about(flags, "--fp16-init-scale"),
            "the result is %.0f, but dtrun begins with %.0f at most; the scale grows automatically",
            scale, most);
    dt_draft_number(draft, "precision.min_loss_scale",
                    dt_flags_number(flags, "--min-loss-scale", 1e-4) * tokens, "%s, times the same",
                    dt_flags_from(flags, "--min-loss-scale"));
    window = dt_flags_number(flags, "--fp16-scale-window", 0);
    if (window > 0)
        dt_flags_set_number(draft, flags, "precision.scale_window", "--fp16-scale-window", window);
    else
        dt_draft_number(draft, "precision.scale_window",
                        fmax(floor(16384 / (world > 0 ? world : 1) / accumulate), 1),
                        "fairseq's 2^14 / ranks / --update-freq");
    if (world == 0)
        dt_draft_note(
            draft, "--fp16",
            "the command line does not say how many GPUs there are: with N of them divide "
            "'scale_window' by N, and multiply 'loss_scale' and 'min_loss_scale'");
}

void dt_fairseq_precision(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                          double step_tokens)
{
    bool half = dt_flags_given(flags, "--fp16") || dt_flags_given(flags, "--memory-efficient-fp16");
    bool brain =
        dt_flags_given(flags, "--bf16") || dt_flags_given(flags, "--memory-efficient-bf16");
    const dt_draft_value *accumulate = dt_draft_find(draft, "batch.accumulate");

    if (half) {
        dt_draft_word(draft, "precision.kind", "fp16", "%s",
                      dt_flags_given(flags, "--fp16") ? "--fp16" : "--memory-efficient-fp16");
        set_loss_scale(draft, flags, launcher, step_tokens, strtod(accumulate->yaml, NULL));
    } else {
        dt_draft_word(draft, "precision.kind", brain ? "bf16" : "fp32", "%s",
                      brain ? "--bf16" : "neither --fp16 nor --bf16");
    }
}
