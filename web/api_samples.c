/* api_samples: answers what the model of a run generated, or predicted, at a step of an evaluation. */
#include <string.h>

#include "web/web_int.h"

#define STEPS_DEFAULT 1000
#define STEPS_MOST    100000 /* as of points */
#define STEP_MOST     INT64_C(9007199254740991)

/* Returns the first step and the last most - 1 steps. */
static json_t *steps_json(const int64_t *steps, int64_t count, int64_t most)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++)
        if (i == 0 || i > count - most)
            json_array_append_new(list, json_integer(steps[i]));
    return list;
}

/* Returns the newest step up to `wanted`; the first step if all are later, -1 if there is none. */
static int64_t step_at(const int64_t *steps, int64_t count, int64_t wanted)
{
    int64_t at = 0;

    while (at + 1 < count && steps[at + 1] <= wanted)
        at++;
    return count > 0 ? steps[at] : -1;
}

/* The arguments `step` and `most`, which default to the newest step. */
static dt_status read_arguments(int64_t *step, int64_t *most, const dt_web_request *request,
                                dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_web_argument_int(step, request, "step", INT64_MAX, 0, STEP_MOST, err));
    DT_TRY(dt_web_argument_int(most, request, "most", STEPS_DEFAULT, 1, STEPS_MOST, err));
out:
    return st;
}

static json_t *step_json(int64_t step)
{
    return step >= 0 ? json_integer(step) : json_null();
}

dt_status dt_web_samples(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t *steps, count, samples_count = 0, wanted, most, step;
    dt_store_sample *samples = NULL;
    json_t *list = json_array();
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(read_arguments(&wanted, &most, request, err));
    DT_TRY(dt_store_sample_steps(request->store, &steps, &count, run.id, request->arena, err));
    step = step_at(steps, count, wanted);
    if (count > 0)
        DT_TRY(dt_store_sample_list(request->store, &samples, &samples_count, run.id, step,
                                    request->arena, err));
    for (int64_t i = 0; i < samples_count; i++)
        json_array_append_new(list, json_pack("{sI sI so so so sI so}", "index",
                                              (json_int_t)samples[i].place, "attempt",
                                              (json_int_t)samples[i].attempt, "time_ms",
                                              dt_web_time_json(samples[i].time_ms), "prompt",
                                              dt_web_string_json(samples[i].prompt), "text",
                                              dt_web_string_json(samples[i].text), "tokens",
                                              (json_int_t)samples[i].tokens, "ended",
                                              dt_web_string_json(samples[i].ended)));
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so so so sO}", "run", dt_web_string_json(run.id), "steps",
                                     steps_json(steps, count, most), "step", step_json(step),
                                     "samples", list),
                           err);
out:
    json_decref(list);
    return st;
}

/* Returns the counts of an event as they are; null if they are no table. */
static json_t *counts_json(const dt_store_confusion *of)
{
    json_t *counts;

    if (dt_json_parse(&counts, of->counts, strlen(of->counts), "confusion", NULL) != DT_OK)
        return json_null();
    return dt_web_value_json(counts);
}

dt_status dt_web_confusion(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t *steps, count, rows_count = 0, wanted, most, step;
    dt_store_confusion *rows = NULL;
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(read_arguments(&wanted, &most, request, err));
    DT_TRY(dt_store_confusion_steps(request->store, &steps, &count, run.id, request->arena, err));
    step = step_at(steps, count, wanted);
    if (count > 0)
        DT_TRY(dt_store_confusion_list(request->store, &rows, &rows_count, run.id, step,
                                       request->arena, err));
    st = dt_web_reply_json(
        reply, 200,
        json_pack("{so so so so so so}", "run", dt_web_string_json(run.id), "steps",
                  steps_json(steps, count, most), "step", step_json(step), "attempt",
                  rows_count > 0 ? json_integer(rows->attempt) : json_null(), "time_ms",
                  rows_count > 0 ? dt_web_time_json(rows->time_ms) : json_null(), "counts",
                  rows_count > 0 ? counts_json(rows) : json_array()),
        err);
out:
    return st;
}
