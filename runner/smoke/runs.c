#include "runner/smoke/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runner/cli/interrupt.h"

#define LOOK_SECONDS   0.02
#define VARIABLE_BYTES 32

static dt_status open_store(dt_smoke_place *place, dt_error *err)
{
    return place->store != NULL ? DT_OK : dt_store_open(&place->store, NULL, err);
}

/* Converts the error object of a refused launch to an error. */
static dt_status refused(const json_t *answer, int exit_code, dt_error *err)
{
    const json_t *error = json_object_get(answer, "error");
    const char *message = json_string_value(json_object_get(error, "message"));

    if (dt_interrupt_seen())
        return DT_FAIL(err, DT_ERR_BUSY, "interrupted");
    if (message == NULL)
        return DT_FAIL(err, DT_ERR_IO, "dtrun launch started no run: exit code %d", exit_code);
    return DT_FAIL(err, DT_ERR_IO, "%s", message);
}

/* Launches detached: an interrupt would not reach a launch that follows the run. */
dt_status dt_smoke_launch(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                          const dt_recipe *recipe, dt_error *err)
{
    const char *words[] = {"launch", NULL, "--detach", NULL}, *id;
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int exit_code = 0;

    out->recipe = *recipe;
    DT_TRY(dt_smoke_place_write(&words[1], place, name, recipe, err));
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, place, words, err));
    id = json_string_value(json_object_get(answer, "run"));
    if (id == NULL)
        DT_TRY(refused(answer, exit_code, err));
    DT_TRY(open_store(place, err));
    DT_TRY(dt_store_run_find(place->store, &out->row, id, place->arena, err));
out:
    json_decref(answer);
    return st;
}

dt_status dt_smoke_await(dt_smoke_run *io, dt_smoke_place *place, dt_smoke_seen *seen,
                         void *context, dt_error *err)
{
    double until = dt_clock_monotonic_seconds() + place->limit_seconds;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run row = io->row;

    dt_arena_init(&arena, 0);
    while (!dt_run_state_is_terminal(row.state) && !seen(place, &row, context, &arena)) {
        if (dt_interrupt_seen())
            DT_THROW(err, DT_ERR_BUSY, "interrupted");
        if (dt_clock_monotonic_seconds() > until) {
            st = DT_FAIL(err, DT_ERR_TIMEOUT, "the run is %s at step %lld after %.0f s (--limit)",
                         dt_run_state_name(row.state), (long long)row.step, place->limit_seconds);
            break;
        }
        dt_clock_sleep_seconds(LOOK_SECONDS);
        dt_arena_reset(&arena);
        DT_TRY(dt_store_run_find(place->store, &row, io->row.id, &arena, err));
    }
    if (st == DT_OK)
        DT_TRY(dt_store_run_find(place->store, &io->row, io->row.id, place->arena, err));
    else
        (void)dt_store_run_find(place->store, &io->row, io->row.id, place->arena, NULL);
out:
    dt_arena_release(&arena);
    return st;
}

static bool has_steps(dt_smoke_place *place, const dt_run *row, void *context, dt_arena *arena)
{
    (void)place;
    (void)arena;
    return row->step >= *(const int64_t *)context;
}

/* Waits until the run has done `steps` steps, or has ended. */
static dt_status await(dt_smoke_run *io, dt_smoke_place *place, int64_t steps, dt_error *err)
{
    return dt_smoke_await(io, place, has_steps, &steps, err);
}

static dt_status not_finished(const dt_run *row, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_IO, "the run is %s%s%s", dt_run_state_name(row->state),
                   row->reason[0] != '\0' ? ": " : "", row->reason);
}

dt_status dt_smoke_train(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, const char *planted, dt_error *err)
{
    double start = dt_clock_monotonic_seconds();
    char variable[VARIABLE_BYTES] = "";
    dt_status st = DT_OK;

    if (planted != NULL) {
        snprintf(variable, sizeof(variable), "%.*s", (int)strcspn(planted, "="), planted);
        setenv(variable, strchr(planted, '=') + 1, 1);
    }
    st = dt_smoke_launch(out, place, name, recipe, err);
    if (planted != NULL)
        unsetenv(variable);
    DT_TRY(st);
    DT_TRY(await(out, place, INT64_MAX, err));
    out->seconds = dt_clock_monotonic_seconds() - start;
    if (out->row.state != DT_RUN_FINISHED)
        DT_TRY(not_finished(&out->row, err));
out:
    return st;
}

dt_status dt_smoke_begin(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_launch(out, place, name, recipe, err));
    DT_TRY(await(out, place, 1, err));
    if (dt_run_state_is_terminal(out->row.state))
        DT_TRY(not_finished(&out->row, err));
out:
    return st;
}

dt_status dt_smoke_line_read(dt_smoke_line *out, const dt_smoke_place *place,
                             const dt_smoke_run *run, const char *metric, dt_error *err)
{
    return dt_store_metric_list(place->store, &out->points, &out->count, run->row.id, metric, -1,
                                false, place->arena, err);
}
