#include "runner/view/runs/timing.h"

#include <math.h>
#include <string.h>

static double elapsed(const dt_run *run, int64_t now_ms)
{
    double seconds = dt_run_elapsed_seconds(run, now_ms);

    return isnan(seconds) ? 0 : seconds;
}

/* The first point of the newest attempt in the window, and its newest two. */
typedef struct ends {
    const dt_run *run;
    dt_metric first; /* attempt 0: no point */
    dt_last_points last;
} ends;

static bool take_first(void *context, const dt_metric *point)
{
    ends *of = context;
    bool own = point->attempt == of->run->attempt && point->time_ms >= of->run->started_ms;

    if (own)
        of->first = *point;
    return !own;
}

static double eta(const ends *of, int64_t now_ms)
{
    int64_t last_step = of->last.step[0], last_ms = of->last.time_ms[0];
    double step_seconds, since, due, left;

    if (of->run->steps_total == 0 || of->first.attempt == 0 || of->last.count < 2 ||
        last_step <= of->first.step || last_ms <= of->first.time_ms)
        return NAN;
    step_seconds =
        (double)(last_ms - of->first.time_ms) * 1e-3 / (double)(last_step - of->first.step);
    since = (double)(now_ms - last_ms) * 1e-3;
    due = (double)(last_step - of->last.step[1]) * step_seconds;
    left = (double)(of->run->steps_total - last_step) * step_seconds - (since < due ? since : due);
    return left > 0 ? left : 0;
}

/* Reads only the points at the ends of the window. */
static dt_status read_ends(ends *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err)
{
    int64_t window = run->steps_total / 10 > 100 ? run->steps_total / 10 : 100;
    dt_store_curves curves;
    dt_status st = DT_OK;

    *out = (ends){.run = run};
    DT_TRY(dt_last_points_read(&out->last, store, run, err));
    DT_TRY(dt_store_curves_find(store, &curves, run->id, out->last.curve, arena, err));
    if (curves.count == 1 && out->last.count > 0)
        DT_TRY(dt_store_curve_scan(store, &curves, 0, run->step - window - 1, INT64_MAX, take_first,
                                   out, err));
out:
    return st;
}

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    ends of;

    out->elapsed_seconds = elapsed(run, now_ms);
    out->eta_seconds = out->lines_per_second = NAN;
    DT_TRY(dt_progress_curve(&out->curve, store, run, err));
    DT_TRY(dt_activity_read(&out->activity, store, run, now_ms, arena, err));
    out->tokens_per_second = out->activity.steps ? run->tokens_per_second : NAN;
    if (run->state == DT_RUN_FINISHED)
        out->eta_seconds = 0;
    if (dt_run_state_is_terminal(run->state))
        return dt_store_run_mean_speed(store, &out->tokens_per_second, run, arena, err);
    if (!out->activity.steps)
        goto out;
    DT_TRY(read_ends(&of, store, run, arena, err));
    out->eta_seconds = eta(&of, now_ms);
    if (strcmp(out->curve, DT_CURVE_LINES) == 0)
        out->lines_per_second = of.last.value;
out:
    return st;
}
