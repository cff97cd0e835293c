#include "runner/view/timing.h"

#include <math.h>

#include "base/banned.h"

static double elapsed(const dt_run *run, int64_t now_ms)
{
    double seconds = dt_run_elapsed_seconds(run, now_ms);

    return isnan(seconds) ? 0 : seconds;
}

/* First and last point of the newest attempt in the window. */
typedef struct ends {
    int64_t attempt;
    dt_metric first, last; /* attempt 0: no point */
    int64_t before_last;   /* step of the point before the last */
} ends;

static bool take_first(void *context, const dt_metric *point)
{
    ends *of = context;

    if (point->attempt == of->attempt)
        of->first = *point;
    return point->attempt != of->attempt;
}

static bool take_last(void *context, const dt_metric *point)
{
    ends *of = context;

    if (point->attempt == of->attempt)
        of->last = *point;
    return false;
}

static double eta(const dt_run *run, const ends *of, int64_t now_ms)
{
    double step_seconds, since, due, left;

    if (run->steps_total == 0 || of->first.attempt == 0 || of->last.step <= of->first.step ||
        of->last.time_ms <= of->first.time_ms)
        return NAN;
    step_seconds = (double)(of->last.time_ms - of->first.time_ms) * 1e-3 /
                   (double)(of->last.step - of->first.step);
    since = (double)(now_ms - of->last.time_ms) * 1e-3;
    due = (double)(of->last.step - of->before_last) * step_seconds;
    left = (double)(run->steps_total - of->last.step) * step_seconds - (since < due ? since : due);
    return left > 0 ? left : 0;
}

/* Reads only the points at the ends of the window. */
static dt_status read_ends(ends *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err)
{
    int64_t window = run->steps_total / 10 > 100 ? run->steps_total / 10 : 100;
    int64_t after = run->step - window - 1;
    dt_store_curves curves;
    dt_status st = DT_OK;

    *out = (ends){.attempt = run->attempt};
    DT_TRY(dt_store_curves_find(store, &curves, run->id, "loss", arena, err));
    if (curves.count != 1)
        goto out;
    DT_TRY(dt_store_curve_scan(store, &curves, 0, after, INT64_MAX, take_first, out, err));
    DT_TRY(dt_store_curve_newest(store, &curves, 0, after, take_last, out, err));
    DT_TRY(dt_store_curve_back(store, &curves, 0, 1, &out->before_last, err));
    if (out->before_last < out->first.step)
        out->before_last = out->first.step;
out:
    return st;
}

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    ends of;

    out->elapsed_seconds = elapsed(run, now_ms);
    out->eta_seconds = NAN;
    DT_TRY(dt_activity_read(&out->activity, store, run, now_ms, arena, err));
    out->tokens_per_second = out->activity.steps ? run->tokens_per_second : NAN;
    if (run->state == DT_RUN_FINISHED)
        out->eta_seconds = 0;
    if (dt_run_state_is_terminal(run->state))
        return dt_store_run_mean_speed(store, &out->tokens_per_second, run, arena, err);
    if (!out->activity.steps)
        goto out;
    DT_TRY(read_ends(&of, store, run, arena, err));
    out->eta_seconds = eta(run, &of, now_ms);
out:
    return st;
}
