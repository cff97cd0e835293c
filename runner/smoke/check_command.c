/* check_command: checks what the program of a recipe with a command shows: that it starts, metrics and checkpoints. */
#include <string.h>

#include "base/clock.h"
#include "runner/smoke/smoke_int.h"
#include "runner/term/format.h"

/* A program that shows neither a metric nor a checkpoint counts as started after this time. */
#define STEADY_SECONDS 5.0

static bool has_metrics(const dt_recipe *recipe)
{
    return recipe->metrics.kind != DT_OUTPUT_METRICS_NONE || recipe->metrics.pattern[0] != '\0' ||
           recipe->metrics.file[0] != '\0';
}

int64_t dt_smoke_first_step(int64_t *points, dt_smoke_place *place, const char *run,
                            int64_t attempt, dt_arena *arena)
{
    int64_t count, least = INT64_MAX;
    dt_metric *all;

    *points = 0;
    if (dt_store_metric_list(place->store, &all, &count, run, NULL, -1, false, arena, NULL) !=
        DT_OK)
        return least;
    for (int64_t i = 0; i < count; i++)
        if (all[i].attempt == attempt) {
            least = all[i].step < least ? all[i].step : least;
            *points += 1;
        }
    return least;
}

bool dt_smoke_shows_metrics(const dt_smoke *smoke)
{
    dt_metric *all;
    int64_t count;

    return has_metrics(&smoke->recipe) &&
           dt_store_metric_list(smoke->place.store, &all, &count, smoke->trained.row.id, NULL, -1,
                                true, smoke->arena, NULL) == DT_OK &&
           count > 0;
}

static bool all_started(dt_smoke_place *place, const dt_run *row, dt_arena *arena)
{
    int64_t count;
    dt_rank *ranks;

    if (dt_store_rank_list(place->store, &ranks, &count, row->id, row->attempt, arena, NULL) !=
            DT_OK ||
        count == 0)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(ranks[i].state, "waiting") == 0 || strcmp(ranks[i].state, "started") == 0)
            return false;
    return true;
}

bool dt_smoke_is_there(dt_smoke_place *place, const dt_run *row, void *context, dt_arena *arena)
{
    dt_smoke_awaited *what = context;
    dt_store_checkpoint *saved;
    int64_t count;

    if (row->attempt > what->attempt)
        return true;
    if (row->attempt < what->attempt || !all_started(place, row, arena))
        return false;
    if (what->up_seconds == 0)
        what->up_seconds = dt_clock_monotonic_seconds();
    if (what->metric &&
        dt_smoke_first_step(&count, place, row->id, row->attempt, arena) == INT64_MAX)
        return false;
    if (what->checkpoint &&
        (dt_store_checkpoint_list(place->store, &saved, &count, row->id, arena, NULL) != DT_OK ||
         count == 0))
        return false;
    return what->metric || what->checkpoint ||
           dt_clock_monotonic_seconds() - what->up_seconds >= STEADY_SECONDS;
}

dt_status dt_smoke_begin_command(dt_smoke_run *out, dt_smoke_awaited *what, dt_smoke *smoke,
                                 const char *name, dt_error *err)
{
    dt_recipe recipe = smoke->recipe;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_place_copy(&recipe, &smoke->place, name, err));
    DT_TRY(dt_smoke_launch(out, &smoke->place, name, &recipe, err));
    DT_TRY(dt_smoke_await(out, &smoke->place, dt_smoke_is_there, what, err));
out:
    return st;
}

bool dt_smoke_has_failed(const dt_run *row)
{
    return dt_run_state_is_terminal(row->state) && row->state != DT_RUN_FINISHED;
}

dt_status dt_smoke_starts(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_smoke_awaited what = {.attempt = 1,
                             .metric = has_metrics(&smoke->recipe),
                             .checkpoint = smoke->recipe.checkpoints.path[0] != '\0'};
    double start = dt_clock_monotonic_seconds();
    dt_smoke_run run = {0};
    dt_status st = DT_OK;
    dt_attempt *attempts;
    dt_rank *ranks;
    int64_t count;

    st = dt_smoke_begin_command(&run, &what, smoke, "starts", err);
    if (st == DT_ERR_TIMEOUT && what.up_seconds > 0) { /* the next checks say what is missing */
        dt_error_clear(err);
        st = DT_OK;
    }
    DT_TRY(st);
    DT_TRY(dt_store_rank_list(smoke->place.store, &ranks, &smoke->ranks, run.row.id, 1,
                              smoke->arena, err));
    DT_TRY(dt_store_attempt_list(smoke->place.store, &attempts, &count, run.row.id, smoke->arena,
                                 err));
    if (count > 1 || dt_smoke_has_failed(&run.row)) { /* a restart would hide the failure */
        dt_smoke_fail(out, smoke, "%s", attempts[0].reason);
        goto out;
    }
    smoke->trained = run;
    dt_smoke_figure(out, smoke, "%lld %s, %s %.1f s", (long long)smoke->ranks,
                    smoke->ranks == 1 ? "process" : "processes",
                    run.row.state == DT_RUN_FINISHED ? "finished after" : "running after",
                    dt_clock_monotonic_seconds() - start);
out:
    return st;
}

dt_status dt_smoke_measures(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const char *run = smoke->trained.row.id;
    int64_t count;
    dt_metric *all;
    dt_status st = DT_OK;

    if (!has_metrics(&smoke->recipe)) {
        dt_smoke_skip(out, smoke, "the recipe has no 'metrics'");
        return DT_OK;
    }
    DT_TRY(dt_store_metric_list(smoke->place.store, &all, &count, run, NULL, -1, true, smoke->arena,
                                err));
    if (count == 0)
        dt_smoke_fail(
            out, smoke, "no metric was read (%s; 'metrics' of the recipe says where they are)",
            dt_run_state_is_terminal(smoke->trained.row.state) ? "the program has ended"
                                                               : "the time limit is --limit");
    else
        dt_smoke_figure(out, smoke, "%lld %s, such as %s %.6g at step %lld", (long long)count,
                        count == 1 ? "metric" : "metrics", all[0].name, all[0].value,
                        (long long)all[0].step);
out:
    return st;
}

dt_status dt_smoke_saves(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const dt_run *run = &smoke->trained.row;
    dt_store_checkpoint *all;
    char size[DT_FORMAT_SIZE];
    dt_status st = DT_OK;
    int64_t count;

    if (smoke->recipe.checkpoints.path[0] == '\0') {
        dt_smoke_skip(out, smoke, "the recipe has no 'checkpoints'");
        return DT_OK;
    }
    DT_TRY(dt_store_checkpoint_list(smoke->place.store, &all, &count, run->id, smoke->arena, err));
    if (count == 0)
        dt_smoke_fail(out, smoke, "no complete checkpoint '%s' appeared (%s)",
                      smoke->recipe.checkpoints.path,
                      dt_run_state_is_terminal(run->state) ? "the program has ended"
                                                           : "the time limit is --limit");
    else
        dt_smoke_figure(out, smoke, "step %lld, %s", (long long)all[0].step,
                        dt_format_bytes(size, sizeof(size), (double)all[0].bytes));
out:
    return st;
}
