#include "runner/view/follow/step_log.h"

#include <stdlib.h>
#include <string.h>

#include "runner/view/follow/step_log_int.h"

void dt_step_log_init(dt_step_log *log, bool json)
{
    *log = (dt_step_log){.json = json, .step = -1, .valid_step = -1, .checkpoint_step = -1};
}

static dt_status start_step(int64_t *out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    dt_attempt *attempts;
    dt_status st = DT_OK;
    int64_t count;

    *out = 0;
    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run->id, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt == run->attempt)
            *out = attempts[i].start_step;
out:
    return st;
}

static void go_back(dt_step_log *log, int64_t step)
{
    log->step = log->step < step ? log->step : step;
    log->valid_step = log->valid_step < step ? log->valid_step : step;
    log->checkpoint_step = log->checkpoint_step < step ? log->checkpoint_step : step;
}

dt_status dt_step_log_begin_at(dt_step_log *log, dt_store *store, const dt_run *run,
                               dt_arena *arena, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t step, count;

    DT_TRY(start_step(&step, store, run, arena, err));
    log->attempt = run->attempt;
    log->step = log->valid_step = log->checkpoint_step = step;
    DT_TRY(dt_store_event_list(store, &events, &count, run->id, 0, 0, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (events[i].attempt < run->attempt)
            log->event_id = events[i].id;
out:
    return st;
}

/* Skips all but the last `most` logged steps, by the metric with the most recent points. */
static dt_status skip_old(dt_step_reading *r, const dt_store_curves *curves, int64_t most,
                          dt_error *err)
{
    dt_status st = DT_OK;
    int64_t step;

    for (int64_t i = 0; i < curves->count; i++) {
        if (dt_step_log_is_evaluation(curves->curves[i].name))
            continue;
        DT_TRY(dt_store_curve_back(r->store, curves, i, most, &step, err));
        r->log->step = step > r->log->step ? step : r->log->step;
    }
    r->log->valid_step = r->log->checkpoint_step = r->log->step;
out:
    return st;
}

static int by_time(const void *a, const void *b)
{
    const dt_step_line *left = a, *right = b;

    if (left->time_ms != right->time_ms)
        return left->time_ms < right->time_ms ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static dt_status read_all(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                          int64_t most, dt_arena *arena, dt_error *err)
{
    dt_step_reading r = {.log = log, .store = store, .run = run, .out = out, .arena = arena};
    int64_t step, since_ms = 0;
    dt_store_curves curves;
    dt_status st = DT_OK;

    DT_TRY(dt_store_curves_find(store, &curves, run->id, NULL, arena, err));
    if (log->attempt != 0 && log->attempt != run->attempt) {
        DT_TRY(start_step(&step, store, run, arena, err));
        go_back(log, step);
    }
    log->attempt = run->attempt;
    if (most > 0)
        DT_TRY(skip_old(&r, &curves, most, err));
    DT_TRY(dt_step_log_read_steps(&r, &curves, err));
    if (most > 0 && out->count >= most)
        since_ms = out->items[0].time_ms;
    DT_TRY(dt_step_log_read_evaluations(&r, err));
    DT_TRY(dt_step_log_read_checkpoints(&r, err));
    DT_TRY(dt_step_log_read_incidents(&r, since_ms, err));
    if (out->count > 1)
        qsort(out->items, (size_t)out->count, sizeof(out->items[0]), by_time);
out:
    return st;
}

/* Reads in one transaction: otherwise a step could be read before its loss was written. */
dt_status dt_step_log_read(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                           int64_t most, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *out = (dt_step_lines){0};
    st = dt_store_begin_reading(store, err);
    if (st != DT_OK)
        return st;
    st = read_all(log, out, store, run, most, arena, err);
    dt_store_rollback(store);
    return st;
}
