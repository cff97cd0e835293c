/* mlflow_protocol: makes the request bodies of MLflow's REST API 2.0 for a run, and decides when a server's
 * refusals end an export. Sends nothing. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/export/mlflow.h"

enum { PARAM_BYTES_MOST = 500, KEY_BYTES_MOST = 250 };

json_t *dt_mlflow_search_body(const char *experiment, const dt_run *run)
{
    char filter[160];

    /* an id needs no escaping */
    snprintf(filter, sizeof(filter), "tags.`" DT_MLFLOW_TAG "` = '%.64s'", run->id);
    return json_pack("{s[s] ss si}", "experiment_ids", experiment, "filter", filter, "max_results",
                     1);
}

static json_t *pair(const char *key, json_t *value)
{
    return json_pack("{ss so}", "key", key, "value", value);
}

json_t *dt_mlflow_tags(const dt_run *run)
{
    json_t *tags = json_array();

    json_array_append_new(tags, pair("dtrun.tags", dt_json_text(run->tags)));
    json_array_append_new(tags, pair("dtrun.group", dt_json_text(run->group)));
    json_array_append_new(tags, pair("dtrun.reason", dt_json_text(run->reason)));
    json_array_append_new(tags, pair("mlflow.note.content", dt_json_text(run->note)));
    return tags;
}

static int64_t started_ms(const dt_run *run)
{
    return run->attempt <= 1 && run->started_ms > 0 ? run->started_ms : run->created_ms;
}

json_t *dt_mlflow_create_body(const char *experiment, const dt_run *run)
{
    json_t *tags = dt_mlflow_tags(run);

    json_array_append_new(tags, pair(DT_MLFLOW_TAG, dt_json_text(run->id)));
    json_array_append_new(tags, pair("mlflow.source.name", json_string("dtrun")));
    return json_pack("{ss so sI so}", "experiment_id", experiment, "run_name",
                     dt_json_text(run->name), "start_time", (json_int_t)started_ms(run), "tags",
                     tags);
}

static const char *status_of(dt_run_state state)
{
    switch (state) {
    case DT_RUN_FINISHED:
        return "FINISHED";
    case DT_RUN_FAILED:
        return "FAILED";
    case DT_RUN_STOPPED:
        return "KILLED";
    case DT_RUN_RUNNING:
    case DT_RUN_STOPPING:
        return "RUNNING";
    default:
        return "SCHEDULED";
    }
}

json_t *dt_mlflow_update_body(const char *run_id, const dt_run *run)
{
    json_t *body = json_pack("{ss ss so}", "run_id", run_id, "status", status_of(run->state),
                             "run_name", dt_json_text(run->name));

    if (dt_run_state_is_terminal(run->state) && run->ended_ms > 0)
        json_object_set_new(body, "end_time", json_integer(run->ended_ms));
    return body;
}

json_t *dt_mlflow_batch_body(const char *run_id, const char *key, json_t *items)
{
    return json_pack("{ss so}", "run_id", run_id, key, items);
}

/* --- names */

static void make_fit(char *name)
{
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && strchr("_-. :/", *name) == NULL)
            *name = '_';
}

const char *dt_mlflow_name(const char *name, dt_arena *arena)
{
    char *out = dt_arena_strndup(arena, name, strnlen(name, KEY_BYTES_MOST));

    make_fit(out);
    return out;
}

/* --- points */

static json_t *value_of(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "NaN"
                                         : value > 0  ? "Infinity"
                                                      : "-Infinity");
}

json_t *dt_mlflow_metric(const dt_metric *point)
{
    return json_pack("{ss so sI sI}", "key", point->name, "value", value_of(point->value),
                     "timestamp", (json_int_t)point->time_ms, "step", (json_int_t)point->step);
}

static int64_t integer_of(const json_t *value)
{
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                 : json_integer_value(value);
}

int64_t dt_mlflow_last_step(const json_t *run, const char *name)
{
    const json_t *metrics = json_object_get(json_object_get(run, "data"), "metrics"), *metric;
    size_t at;

    json_array_foreach(metrics, at, metric) {
        const char *key = json_string_value(json_object_get(metric, "key"));

        if (key != NULL && strcmp(key, name) == 0)
            return integer_of(json_object_get(metric, "step")); /* missing if it is 0 */
    }
    return INT64_MIN;
}

/* --- the recipe */

static bool is_known(const json_t *known, const char *key)
{
    const json_t *param;
    size_t at;

    json_array_foreach(known, at, param) {
        const char *name = json_string_value(json_object_get(param, "key"));

        if (name != NULL && strcmp(name, key) == 0)
            return true;
    }
    return false;
}

static void add_param(json_t *params, const char *key, const json_t *value, const json_t *known)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (json_is_string(value))
        dt_strbuf_add_str(&text, json_string_value(value));
    else
        dt_json_write(&text, value);
    if (text.length > PARAM_BYTES_MOST)
        text.data[PARAM_BYTES_MOST] = '\0';
    if (!is_known(known, key))
        json_array_append_new(params, pair(key, dt_json_text(text.data)));
    dt_strbuf_release(&text);
}

/* Flattens {"a": {"b": 1}} to a.b = 1. */
static void add_params(json_t *params, const char *prefix, json_t *object, const json_t *known)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value) {
        char key[KEY_BYTES_MOST + 1];

        snprintf(key, sizeof(key), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", name);
        make_fit(key);
        if (json_is_object(value))
            add_params(params, key, value, known);
        else
            add_param(params, key, value, known);
    }
}

json_t *dt_mlflow_params(const dt_run *run, const json_t *known)
{
    json_t *params = json_array(), *recipe;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "recipe", NULL) ==
        DT_OK) {
        add_params(params, "", recipe, known);
        json_decref(recipe);
    }
    return params;
}

bool dt_mlflow_is_refusal(dt_status st)
{
    return st == DT_ERR_USAGE || st == DT_ERR_NOT_FOUND || st == DT_ERR_CORRUPT;
}

bool dt_mlflow_gives_up(dt_mlflow_patience *patience, dt_status st, double now_seconds)
{
    if (!dt_mlflow_is_refusal(st)) {
        if (st == DT_OK) /* a server that is down in between does not reset the time */
            patience->refused = false;
        return st != DT_OK && st != DT_ERR_BUSY;
    }
    if (!patience->refused)
        patience->refused_seconds = now_seconds;
    patience->refused = true;
    return now_seconds - patience->refused_seconds >= DT_MLFLOW_REFUSED_SECONDS_MOST;
}
