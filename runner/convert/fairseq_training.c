/* fairseq_training: converts optimizer, schedule, batch, length and precision of a fairseq-train command
 * line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/convert_int.h"

/* Both programs compute the learning rate of update n, counted from 0, from the schedule at n. */

dt_status dt_fairseq_first(double *out, const dt_flags *flags, const char *name, double fallback,
                           dt_error *err)
{
    const char *text = dt_flags_text(flags, name, NULL);
    char *end;

    *out = fallback;
    if (text == NULL)
        return DT_OK;
    text += strspn(text, "[( ");
    *out = strtod(text, &end);
    if (end == text || !isfinite(*out) || (*end != '\0' && strchr(",]) ", *end) == NULL))
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a number, or several with commas, got '%s'",
                       name, dt_flags_text(flags, name, ""));
    if (strpbrk(end, "0123456789") != NULL)
        dt_draft_left(flags->draft, dt_flags_about(flags, name),
                      "one value per epoch: dtrun uses the first for the whole run");
    return DT_OK;
}

/* --- optimizer --- */

/* Parses "(0.9, 0.98)". */
static dt_status set_betas(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    const char *text = dt_flags_text(flags, "--adam-betas", "(0.9, 0.999)"), *at;
    const char *from = dt_flags_from(flags, "--adam-betas");
    double beta1, beta2;
    char *end;

    at = text + strspn(text, "[( ");
    beta1 = strtod(at, &end);
    at = end + strspn(end, ", ");
    beta2 = strtod(at, &end);
    if (end == at || end[strspn(end, ") ]")] != '\0' || !(beta1 >= 0 && beta1 < 1) ||
        !(beta2 >= 0 && beta2 < 1))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--adam-betas: expected two numbers below 1, as in '(0.9, 0.98)', got '%s'",
                       text);
    dt_draft_number(draft, "optimizer.beta1", beta1, "%s", from);
    dt_draft_number(draft, "optimizer.beta2", beta2, "%s", from);
    return DT_OK;
}

static dt_status set_adam(dt_draft *draft, const dt_flags *flags, const char *kind, dt_error *err)
{
    const char *from = dt_flags_from(flags, "--optimizer");

    dt_draft_word(draft, "optimizer.kind", "adamw", "%s: its decay is decoupled", from);
    if (strcmp(kind, "cpu_adam") == 0)
        dt_draft_note(draft, from, "the step is computed on the devices, by the same formula");
    else
        dt_draft_word(draft, "optimizer.variant", "fairseq", "%s: epsilon before the correction",
                      from);
    dt_draft_number(draft, "optimizer.eps", dt_flags_number(flags, "--adam-eps", 1e-8), "%s",
                    dt_flags_from(flags, "--adam-eps"));
    return set_betas(draft, flags, err);
}

static void set_sgd(dt_draft *draft, const dt_flags *flags, const char *kind)
{
    bool nag = strcmp(kind, "nag") == 0;
    double momentum = dt_flags_number(flags, "--momentum", nag ? 0.99 : 0);

    dt_draft_word(draft, "optimizer.kind", "sgd", "%s", dt_flags_from(flags, "--optimizer"));
    dt_draft_number(draft, "optimizer.momentum", momentum, "%s",
                    dt_flags_from(flags, "--momentum"));
    if (!nag)
        return;
    if (momentum > 0)
        dt_draft_word(draft, "optimizer.nesterov", "true", "%s",
                      dt_flags_from(flags, "--optimizer"));
    if (dt_flags_number(flags, "--weight-decay", 0) > 0)
        dt_draft_left(
            draft, dt_flags_about(flags, "--weight-decay"),
            "nag's weight decay is decoupled from the gradient; that of dtrun's sgd is not");
}

dt_status dt_fairseq_optimizer(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    const char *kind = dt_flags_text(flags, "--optimizer", "adam");
    dt_status st = DT_OK;

    if (strcmp(kind, "adam") == 0 || strcmp(kind, "cpu_adam") == 0)
        st = set_adam(draft, flags, kind, err);
    else if (strcmp(kind, "nag") == 0 || strcmp(kind, "sgd") == 0)
        set_sgd(draft, flags, kind);
    else
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unsupported --optimizer %s (expected adam, cpu_adam, nag or sgd)", kind);
    if (!dt_flags_given(flags, "--optimizer"))
        dt_draft_note(draft, "--optimizer", "it is missing; adam is assumed");
    dt_draft_number(draft, "optimizer.weight_decay", dt_flags_number(flags, "--weight-decay", 0),
                    "%s", dt_flags_from(flags, "--weight-decay"));
    if (dt_flags_number(flags, "--weight-decay", 0) > 0)
        dt_draft_word(draft, "optimizer.decays", "all", "fairseq's default: norms and biases too");
    return st;
}

/* --- schedule --- */

static double set_warmup(dt_draft *draft, const dt_flags *flags, double fallback, double start)
{
    double steps = dt_flags_number(flags, "--warmup-updates", fallback);
    double from = dt_flags_number(flags, "--warmup-init-lr", -1);

    if (steps <= 0)
        return 0;
    dt_flags_set_number(draft, flags, "schedule.warmup_steps", "--warmup-updates", fallback);
    if (from >= 0)
        dt_flags_set_number(draft, flags, "schedule.warmup_init_lr", "--warmup-init-lr", from);
    else
        dt_draft_number(draft, "schedule.warmup_init_lr", start, "fairseq's default");
    return steps;
}

/* In older versions of fairseq a cosine rises to --max-lr, and --lr is its lowest rate. */
static void set_cosine(dt_draft *draft, const dt_flags *flags, double lr)
{
    bool older = dt_flags_given(flags, "--max-lr");
    double low = older ? lr : dt_flags_number(flags, "--min-lr", 0), warmup, period;

    if (low < 0)
        low = 0;
    if (older) {
        dt_flags_set_number(draft, flags, "optimizer.lr", "--max-lr", lr);
        if (dt_flags_number(flags, "--min-lr", 0) > 0)
            dt_draft_left(draft, dt_flags_about(flags, "--min-lr"),
                          "a run continues to its end, whatever the learning rate is");
    }
    dt_draft_number(draft, "schedule.min_lr", low, "%s",
                    dt_flags_from(flags, older ? "--lr" : "--min-lr"));
    warmup = set_warmup(draft, flags, 0, low);
    period = dt_flags_number(flags, "--lr-period-updates", 0);
    if (period > 0)
        dt_draft_number(draft, "schedule.period_steps", floor(period + 0.5), "%s",
                        dt_flags_from(flags, "--lr-period-updates"));
    if (period <= 0 || period + warmup >= dt_flags_number(flags, "--max-update", INFINITY))
        return; /* the run ends within the first period */
    dt_flags_set_number(draft, flags, "schedule.period_mult", "--t-mult", 1);
    dt_flags_set_number(draft, flags, "schedule.shrink", "--lr-shrink", 0.1);
}

static void set_polynomial(dt_draft *draft, const dt_flags *flags)
{
    double total = dt_flags_number(flags, "--total-num-update", 1000000);
    double steps = dt_flags_number(flags, "--max-update", 0);

    dt_flags_set_number(draft, flags, "schedule.min_lr", "--end-learning-rate", 0);
    dt_flags_set_number(draft, flags, "schedule.power", "--power", 1);
    set_warmup(draft, flags, 0, 0);
    if (steps != total)
        dt_draft_left(draft, dt_flags_about(flags, "--total-num-update"),
                      "the learning rate would reach its end at update %.0f; in dtrun it does at "
                      "the run's last step",
                      total);
}

/* Converts the schedule `fixed`: in its warmup the rate at update n is lr (n + 1) / warmup, which
 * rises from lr / warmup in a straight line. */
static void set_fixed(dt_draft *draft, const dt_flags *flags, double lr)
{
    double warmup = dt_flags_number(flags, "--warmup-updates", 0);

    set_warmup(draft, flags, 0, warmup > 0 ? lr / warmup : 0);
}

void dt_fairseq_schedule(dt_draft *draft, const dt_flags *flags)
{
    const char *kind = dt_flags_text(flags, "--lr-scheduler", "fixed");
    const char *from = dt_flags_from(flags, "--lr-scheduler");
    const dt_draft_value *value = dt_draft_find(draft, "optimizer.lr");
    double lr = value != NULL ? strtod(value->yaml, NULL) : 0.25;
    bool cosine = strcmp(kind, "cosine") == 0;

    if (cosine)
        set_cosine(draft, flags, lr);
    else if (dt_flags_number(flags, "--min-lr", -1) > 0)
        dt_draft_left(draft, dt_flags_about(flags, "--min-lr"),
                      "fairseq ends the run there; dtrun continues to the last step");
    if (strcmp(kind, "inverse_sqrt") == 0)
        set_warmup(draft, flags, 4000, 0);
    else if (strcmp(kind, "polynomial_decay") == 0)
        set_polynomial(draft, flags);
    else if (!cosine)
        set_fixed(draft, flags, lr);
    dt_draft_word(draft, "schedule.kind",
                  cosine                                  ? "cosine"
                  : strcmp(kind, "inverse_sqrt") == 0     ? "inverse_sqrt"
                  : strcmp(kind, "polynomial_decay") == 0 ? "polynomial"
                                                          : "constant",
                  "%s", from);
    if (!cosine && strcmp(kind, "inverse_sqrt") != 0 && strcmp(kind, "polynomial_decay") != 0 &&
        strcmp(kind, "fixed") != 0)
        dt_draft_left(draft, from,
                      "supported: cosine, inverse_sqrt, polynomial_decay and fixed; the learning "
                      "rate stays constant");
}

/* Batch, length and precision. */

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

/* Sets the fields of `batch`. *step_tokens: tokens of one rank in a step. */
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
