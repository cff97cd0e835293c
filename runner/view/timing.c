#include "runner/view/timing.h"

#include <math.h>

#include "base/banned.h"

static double elapsed(const dt_run *run, int64_t now_ms)
{
    double seconds = dt_run_elapsed_seconds(run, now_ms);

    return isnan(seconds) ? 0 : seconds;
}

static double eta(const dt_run *run, const dt_metric *points, int64_t count, int64_t now_ms)
{
    const dt_metric *first = NULL, *last = NULL;
    double left;

    for (int64_t i = 0; i < count; i++) {
        if (points[i].attempt != run->attempt)
            continue;
        if (first == NULL)
            first = &points[i];
        last = &points[i];
    }
    if (run->steps_total == 0 || first == NULL || last->step <= first->step ||
        last->time_ms <= first->time_ms)
        return NAN;
    left = (double)(run->steps_total - last->step) * (double)(last->time_ms - first->time_ms) *
               1e-3 / (double)(last->step - first->step) -
           (double)(now_ms - last->time_ms) * 1e-3;
    return left > 0 ? left : 0;
}

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err)
{
    int64_t window = run->steps_total / 10 > 100 ? run->steps_total / 10 : 100, count = 0;
    dt_metric *points = NULL;
    dt_status st = DT_OK;

    out->elapsed_seconds = elapsed(run, now_ms);
    out->eta_seconds = NAN;
    out->tokens_per_second = run->tokens_per_second;
    if (run->state == DT_RUN_FINISHED)
        out->eta_seconds = 0;
    if (dt_run_state_is_terminal(run->state))
        return dt_store_run_mean_speed(store, &out->tokens_per_second, run, arena, err);
    if (run->state != DT_RUN_RUNNING)
        return DT_OK;
    DT_TRY(dt_store_metric_list(store, &points, &count, run->id, "loss", run->step - window - 1, 0,
                                arena, err));
    out->eta_seconds = eta(run, points, count, now_ms);
out:
    return st;
}
