/* check_agreement: compares two runs of a recipe. */
#include <math.h>
#include <string.h>

#include "base/metric_kinds.h"
#include "runner/smoke/smoke_int.h"

enum { LEARNING_STEPS = 40, LAST_POINTS = 5, COMPARED_STEPS = 6 };
/* Least tokens of data that are not counted because that needs a full read. */
#define TOKENS_OF_LARGE_DATA 16e6
/* Least relative fall of a loss. */
#define LEAST_FALL 1e-3

/* --- repeated samples */

/* Keeps only the data of one step for training; the rest is for validation. */
static void keep_one_step(dt_recipe *out, const dt_smoke *smoke)
{
    const dt_recipe *recipe = &smoke->recipe;
    double samples = (double)(dt_recipe_data_ranks(recipe, smoke->ranks) * recipe->batch.sequences *
                              recipe->batch.accumulate);
    double tokens = (double)recipe->batch.tokens;
    double wanted = smoke->rows ? samples + 1 : (samples + 1) * tokens + 2;
    double total = (double)smoke->flight.data.train_tokens;

    if (total <= 0)
        total = TOKENS_OF_LARGE_DATA;
    else if (recipe->data.validation.count == 0)
        total /= 1 - recipe->data.split;
    if (wanted >= total)
        return;
    out->data.validation.count = 0;
    out->data.mixture.count = 0; /* its files are those of 'train' */
    out->data.split = 1 - wanted / total;
}

/* Copies the recipe without evaluations and checkpoints, and without dropout, so that steps can be
 * compared. */
static dt_recipe plain(const dt_recipe *recipe)
{
    dt_recipe out = *recipe;

    out.model.dropout = out.model.attention_dropout = 0;
    out.evaluate.every = out.checkpoint.every = 0;
    return out;
}

static double mean_of_last(const dt_smoke_line *line, int64_t count)
{
    double sum = 0;

    for (int64_t i = line->count - count; i < line->count; i++)
        sum += line->points[i].value;
    return sum / (double)count;
}

dt_status dt_smoke_learns(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_recipe longer, recipe = plain(&smoke->recipe);
    dt_shrink how = smoke->wish->how;
    dt_preflight known; /* text was tokenized by now and can be counted */
    dt_smoke_line loss;
    dt_smoke_run run;
    dt_status st = DT_OK;
    double last;

    how.steps = LEARNING_STEPS;
    how.here = true; /* keep its ranks */
    dt_shrink_recipe(&longer, smoke->asked, &how);
    recipe.schedule = longer.schedule;
    DT_TRY(dt_preflight_recipe(&known, &smoke->recipe, NULL, smoke->arena, err));
    smoke->flight.data = known.data;
    keep_one_step(&recipe, smoke);
    DT_TRY(dt_smoke_train(&run, &smoke->place, "learns", &recipe, NULL, err));
    DT_TRY(dt_smoke_line_read(&loss, &smoke->place, &run, dt_metric_name(DT_METRIC_LOSS), err));
    if (loss.count < LAST_POINTS) {
        dt_smoke_fail(out, smoke, "only %lld steps have a loss", (long long)loss.count);
        goto out;
    }
    last = mean_of_last(&loss, LAST_POINTS);
    if (last < (1 - LEAST_FALL) * loss.points[0].value)
        dt_smoke_figure(out, smoke, "loss %.4g to %.4g in %lld steps", loss.points[0].value, last,
                        (long long)loss.count);
    else
        dt_smoke_fail(
            out, smoke,
            "the loss went from %.4g to %.4g in %lld steps on the same samples; try another "
            "'optimizer.lr' (%g)",
            loss.points[0].value, last, (long long)loss.count, recipe.optimizer.lr);
out:
    return st;
}

/* --- several ranks and one */

/* Largest allowed relative difference of two losses: rounding of the type of computation or messages. */
static double bound_of(const dt_recipe *recipe)
{
    if (recipe->precision.kind == DT_PRECISION_BF16 ||
        recipe->strategy.reduce_dtype == DT_REDUCE_BF16)
        return 1e-2;
    return recipe->precision.kind == DT_PRECISION_FP16 ? 2e-3 : 1e-4;
}

/* Largest relative difference of the first steps; infinite if a step is missing. */
static double distance(const dt_smoke_line *a, const dt_smoke_line *b)
{
    double most = 0;

    for (int64_t i = 0; i < COMPARED_STEPS; i++) {
        double x, y;

        if (i >= a->count || i >= b->count || a->points[i].step != b->points[i].step)
            return INFINITY;
        x = a->points[i].value;
        y = b->points[i].value;
        most = fmax(most, fabs(x - y) / fmax(fabs(x), 1e-12));
    }
    return most;
}

static dt_status distance_of_runs(double *out, const dt_smoke *smoke, const dt_smoke_run *a,
                                  const dt_smoke_run *b, const char *metric, dt_error *err)
{
    dt_smoke_line first, second;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_line_read(&first, &smoke->place, a, metric, err));
    DT_TRY(dt_smoke_line_read(&second, &smoke->place, b, metric, err));
    *out = distance(&first, &second);
out:
    return st;
}

static bool drops(const dt_recipe *recipe)
{
    return recipe->model.dropout > 0 || recipe->model.attention_dropout > 0;
}

dt_status dt_smoke_agrees(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_recipe several = plain(&smoke->recipe), one;
    dt_smoke_run ranks = smoke->trained, alone;
    double loss, norm, bound = bound_of(&several);
    dt_status st = DT_OK;

    if (smoke->ranks == 1) {
        dt_smoke_skip(out, smoke, "not applicable to one process");
        return DT_OK;
    }
    dt_shrink_to_one(&one, &several);
    one.batch.accumulate *= dt_recipe_data_ranks(&several, smoke->ranks);
    if (drops(&smoke->recipe)) /* dropout masks differ between numbers of ranks */
        DT_TRY(dt_smoke_train(&ranks, &smoke->place, "several", &several, NULL, err));
    DT_TRY(dt_smoke_train(&alone, &smoke->place, "one", &one, NULL, err));
    DT_TRY(distance_of_runs(&loss, smoke, &alone, &ranks, dt_metric_name(DT_METRIC_LOSS), err));
    DT_TRY(distance_of_runs(&norm, smoke, &alone, &ranks, "gradient_norm", err));
    if (loss <= bound && norm <= 10 * bound)
        dt_smoke_figure(out, smoke, "losses within %.1e, gradient norms within %.1e of one process",
                        loss, norm);
    else
        dt_smoke_fail(
            out, smoke,
            "losses differ by %.1e (bound %.0e), gradient norms by %.1e (bound %.0e) from "
            "one process",
            loss, bound, norm, 10 * bound);
out:
    return st;
}

/* --- bit for bit */

dt_status dt_smoke_same_bits(bool *same, dt_smoke_result *out, dt_smoke *smoke,
                             const dt_smoke_run *undisturbed, const dt_smoke_run *run,
                             dt_error *err)
{
    dt_smoke_line whole, line;
    dt_status st = DT_OK;

    *same = true;
    DT_TRY(dt_smoke_line_read(&whole, &smoke->place, undisturbed, dt_metric_name(DT_METRIC_LOSS),
                              err));
    DT_TRY(dt_smoke_line_read(&line, &smoke->place, run, dt_metric_name(DT_METRIC_LOSS), err));
    if (line.count != whole.count) {
        *same = false;
        dt_smoke_fail(out, smoke, "the run has %lld losses, the undisturbed run has %lld",
                      (long long)line.count, (long long)whole.count);
    }
    for (int64_t i = 0; i < whole.count && *same; i++) {
        double a = whole.points[i].value, b = line.points[i].value;

        if (whole.points[i].step == line.points[i].step && memcmp(&a, &b, sizeof(a)) == 0)
            continue;
        *same = false;
        dt_smoke_fail(out, smoke,
                      "the loss of step %lld is %.9g, in the undisturbed run it is %.9g",
                      (long long)line.points[i].step, b, a);
    }
out:
    return st;
}
