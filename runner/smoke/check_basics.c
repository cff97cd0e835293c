/* check_basics: checks training, evaluation, generation, memory and stopping with one run. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/metric_kinds.h"
#include "base/names.h"
#include "runner/smoke/smoke_int.h"
#include "runner/term/term.h"
#include "store/event.h"

#define EVER_STEPS   1000000000
#define EVER_SECONDS 900 /* limit of a run that is not stopped */
#define MEMORY_SHARE 1.1
#define MEMORY_SPARE (16 << 20) /* padding, a large part of a scaled-down model */

/* With --here the number of ranks may depend on the GPUs of the nodes. */
static dt_status count_ranks(dt_smoke *smoke, dt_error *err)
{
    dt_recipe *recipe = &smoke->recipe;
    dt_status st = DT_OK;
    dt_rank *ranks;

    if (!smoke->wish->how.here)
        return DT_OK;
    DT_TRY(dt_store_rank_list(smoke->place.store, &ranks, &smoke->ranks, smoke->trained.row.id, 1,
                              smoke->arena, err));
    if (smoke->ranks > 0 && strcmp(ranks[0].device, DT_DEVICE_CPU) == 0)
        recipe->gpus = 0; /* no GPU was found */
    if (recipe->strategy.kind == DT_STRATEGY_DP)
        smoke->ranks = recipe->gpus > recipe->ranks ? recipe->gpus : recipe->ranks;
out:
    return st;
}

dt_status dt_smoke_trains(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_smoke_line loss;
    dt_smoke_run run;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_train(&run, &smoke->place, "trains", &smoke->recipe, NULL, err));
    DT_TRY(dt_smoke_line_read(&loss, &smoke->place, &run, dt_metric_name(DT_METRIC_LOSS), err));
    for (int64_t i = 0; i < loss.count; i++)
        if (!isfinite(loss.points[i].value))
            dt_smoke_fail(out, smoke, "the loss of step %lld is %g", (long long)loss.points[i].step,
                          loss.points[i].value);
    if (loss.count < smoke->recipe.schedule.steps)
        dt_smoke_fail(out, smoke, "%lld of %lld steps have a loss", (long long)loss.count,
                      (long long)smoke->recipe.schedule.steps);
    if (out->verdict == DT_SMOKE_FAILED)
        goto out;
    smoke->trained = run;
    DT_TRY(count_ranks(smoke, err));
    dt_smoke_figure(out, smoke, "%lld steps on %lld %s, loss %.4g to %.4g", (long long)loss.count,
                    (long long)smoke->ranks, smoke->ranks == 1 ? "rank" : "ranks",
                    loss.points[0].value, loss.points[loss.count - 1].value);
out:
    return st;
}

/* Returns a file that is used for training and validation, or NULL. */
static const char *trained_and_validated(const dt_recipe *recipe)
{
    struct stat train, valid;

    for (int64_t i = 0; i < recipe->data.validation.count; i++)
        for (int64_t j = 0; j < recipe->data.train.count; j++)
            if (stat(recipe->data.validation.items[i], &valid) == 0 &&
                stat(recipe->data.train.items[j], &train) == 0 && valid.st_dev == train.st_dev &&
                valid.st_ino == train.st_ino)
                return recipe->data.validation.items[i];
    return NULL;
}

dt_status dt_smoke_evaluates(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const char *same = trained_and_validated(&smoke->flight.recipe);
    dt_smoke_line valid;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_line_read(&valid, &smoke->place, &smoke->trained,
                              dt_metric_name(DT_METRIC_VALID_LOSS), err));
    if (valid.count == 0)
        dt_smoke_skip(out, smoke, "no validation data");
    else if (same != NULL)
        dt_smoke_fail(out, smoke, "the validation file '%s' is also a training file", same);
    else if (!isfinite(valid.points[valid.count - 1].value))
        dt_smoke_fail(out, smoke, "the validation loss is %g", valid.points[valid.count - 1].value);
    else
        dt_smoke_figure(out, smoke, "validation loss %.4g over %lld sequences",
                        valid.points[valid.count - 1].value,
                        (long long)smoke->recipe.evaluate.sequences);
out:
    return st;
}

/* Checks that two lines can be translated. */
static dt_status translates(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const char *path = dt_arena_printf(smoke->arena, "%s/lines.txt", smoke->place.folder);
    const char *const words[] = {
        "generate", smoke->trained.row.id, "--input", path, "--tokens", "8", NULL};
    static const char lines[] = "a line\nand another\n";
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int exit_code = 0;

    DT_TRY(dt_file_write_atomic(path, lines, sizeof(lines) - 1, 0600, err));
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, &smoke->place, words, err));
    if (exit_code != 0 || json_array_size(json_object_get(answer, "lines")) != 2)
        dt_smoke_fail(out, smoke, "dtrun generate --input failed with exit code %d", exit_code);
    else
        dt_smoke_figure(out, smoke, "translated 2 lines");
out:
    json_decref(answer);
    return st;
}

dt_status dt_smoke_generates(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const char *const words[] = {"generate", smoke->trained.row.id, "--tokens", "8", NULL};
    /* a model on token ids needs a first id, and refuses the first call */
    const char *const ids[] = {"generate", smoke->trained.row.id, "--tokens", "8", "--prompt", "0",
                               NULL};
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int exit_code = 0;

    if (smoke->rows) {
        dt_smoke_skip(out, smoke, "not applicable to a model on rows");
        return DT_OK;
    }
    if (smoke->pairs)
        return translates(out, smoke, err);
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, &smoke->place, words, err));
    if (exit_code == 2) {
        json_decref(answer);
        answer = NULL;
        DT_TRY(dt_smoke_place_call(&answer, &exit_code, &smoke->place, ids, err));
    }
    if (exit_code != 0 || !json_is_string(json_object_get(answer, "text")))
        dt_smoke_fail(out, smoke, "dtrun generate failed with exit code %d", exit_code);
    else
        dt_smoke_figure(out, smoke, "8 tokens from the checkpoint of step %lld",
                        (long long)json_integer_value(json_object_get(answer, "step")));
out:
    json_decref(answer);
    return st;
}

/* --- memory */

/* Adds up the parts of a memory event of a rank. */
static int64_t bytes_of(const char *text)
{
    static const char *const parts[] = {"parameters_bytes", "gradients_bytes", "optimizer_bytes",
                                        "activations_bytes", "buffers_bytes"};
    json_t *event = NULL;
    int64_t bytes = 0;

    if (dt_json_parse(&event, text, strlen(text), "event", NULL) != DT_OK)
        return 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        bytes += json_integer_value(json_object_get(event, parts[i]));
    json_decref(event);
    return bytes;
}

dt_status dt_smoke_memory(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const dt_memory *forecast = &smoke->flight.memory;
    int64_t count, most = 0, expected = forecast->total_bytes - forecast->runtime_bytes;
    char took[DT_FORMAT_SIZE], answer[DT_FORMAT_SIZE];
    dt_store_event *events;
    dt_status st = DT_OK;

    DT_TRY(dt_store_event_list(smoke->place.store, &events, &count, smoke->trained.row.id, 0, 0,
                               smoke->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (strcmp(events[i].kind, "memory") == 0 && bytes_of(events[i].json) > most)
            most = bytes_of(events[i].json);
    dt_format_bytes(took, sizeof(took), (double)most);
    dt_format_bytes(answer, sizeof(answer), (double)expected);
    if (most == 0)
        dt_smoke_fail(out, smoke, "no rank reported its memory");
    else if ((double)most > MEMORY_SHARE * (double)expected + (double)MEMORY_SPARE)
        dt_smoke_fail(out, smoke, "a rank used %s, predicted %s", took, answer);
    else
        dt_smoke_figure(out, smoke, "%s a rank, predicted %s", took, answer);
out:
    return st;
}

/* --- stop */

static int64_t count_living(const dt_rank *ranks, int64_t count)
{
    int64_t living = 0;

    for (int64_t i = 0; i < count; i++)
        living += ranks[i].pid > 0 && kill((pid_t)ranks[i].pid, 0) == 0;
    return living;
}

/* Makes a run that continues until it is stopped, and saves only then. */
static dt_recipe endless(const dt_recipe *recipe)
{
    dt_recipe out = *recipe;

    out.schedule.steps = EVER_STEPS;
    out.time_limit_seconds = EVER_SECONDS;
    out.checkpoint.every = out.evaluate.every = 0;
    return out;
}

dt_status dt_smoke_stop_run(dt_smoke_result *out, dt_smoke *smoke, dt_smoke_run *run, dt_error *err)
{
    const char *words[] = {"stop", run->row.id, NULL};
    json_t *answer = NULL;
    int64_t count, living;
    int exit_code = 0;
    dt_rank *ranks;
    dt_status st = DT_OK;
    double start;

    DT_TRY(dt_store_rank_list(smoke->place.store, &ranks, &count, run->row.id, run->row.attempt,
                              smoke->arena, err));
    start = dt_clock_monotonic_seconds();
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, &smoke->place, words, err));
    DT_TRY(dt_store_run_find(smoke->place.store, &run->row, run->row.id, smoke->arena, err));
    living = smoke->wish->how.here
                 ? 0
                 : count_living(ranks, count); /* on other nodes stop has checked */
    if (exit_code != 0 || run->row.state != DT_RUN_STOPPED)
        dt_smoke_fail(out, smoke, "dtrun stop failed with exit code %d, and the run is %s: %s",
                      exit_code, dt_run_state_name(run->row.state), run->row.reason);
    else if (living > 0)
        dt_smoke_fail(out, smoke, "%lld of %lld ranks still run", (long long)living,
                      (long long)count);
    else
        dt_smoke_figure(out, smoke, "%s step %lld and ended within %.1f s, no process left",
                        smoke->command ? "stopped after" : "saved", (long long)run->row.step,
                        dt_clock_monotonic_seconds() - start);
out:
    json_decref(answer);
    return st;
}

dt_status dt_smoke_stops(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_recipe recipe = endless(&smoke->recipe);
    dt_smoke_run run;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_begin(&run, &smoke->place, "stops", &recipe, err));
    DT_TRY(dt_smoke_stop_run(out, smoke, &run, err));
out:
    return st;
}
