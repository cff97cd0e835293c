/* mlflow: imports the runs of an MLflow tracking server with its REST API 2.0: names, points, and
 * params as recipes.
 *
 * Answers come in pages. Runs that 'dtrun export --to mlflow' made are skipped: the history has them already.
 */
#include <stdlib.h>
#include <string.h>

#include "runner/export/mlflow.h"
#include "runner/import/import.h"

#define API         "api/2.0/mlflow/"
#define RUNS_PAGE   100
#define POINTS_PAGE 25000
#define ID_SHOWN    8 /* digits of MLflow's id that are added to a duplicate name */

typedef struct reading {
    dt_rest *rest;
    dt_imported *out;
    json_t *seen; /* {name: true} */
} reading;

/* Reads an integer, or a string with one. */
static bool integer_of(int64_t *out, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    char *end;

    *out = text != NULL ? strtoll(text, &end, 10) : json_integer_value(value);
    return text != NULL ? end != text && *end == '\0' : value == NULL || json_is_integer(value);
}

/* Reads a number, or a string such as "NaN" or "Infinity". */
static bool value_of(double *out, const json_t *value)
{
    const char *text = json_string_value(value);
    char *end;

    *out = text != NULL ? strtod(text, &end) : json_number_value(value);
    return text != NULL ? end != text && *end == '\0' : json_is_number(value);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* Sets the token of the next page; "" after the last. */
static void next_page(dt_strbuf *token, const json_t *answer)
{
    dt_strbuf_reset(token);
    dt_strbuf_add_str(token, text_of(answer, "next_page_token"));
}

/* --- points */

static dt_status points_add(reading *r, int32_t run, int32_t metric, const json_t *answer,
                            dt_error *err)
{
    const json_t *points = json_object_get(answer, "metrics"), *point;
    dt_status st = DT_OK;
    size_t at;

    json_array_foreach(points, at, point) {
        dt_import_point add = {.run = run, .metric = metric};

        if (!integer_of(&add.step, point, "step") ||
            !integer_of(&add.time_ms, point, "timestamp") ||
            !value_of(&add.value, json_object_get(point, "value")))
            DT_THROW(err, DT_ERR_CORRUPT, "MLflow: run '%s': a point of '%s' is not a number",
                     r->out->runs.items[run], r->out->metrics.items[metric]);
        DT_TRY(dt_import_add(r->out, &add, err));
    }
out:
    return st;
}

static dt_status metric_read(reading *r, int32_t run, const char *run_id, const char *name,
                             dt_error *err)
{
    dt_strbuf path, token;
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int32_t metric;

    dt_strbuf_init(&path);
    dt_strbuf_init(&token);
    dt_import_name(&metric, &r->out->metrics, name, r->out->arena);
    do {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, API "metrics/get-history?max_results=%d&run_id=", POINTS_PAGE);
        dt_rest_escape(&path, run_id);
        dt_strbuf_add_str(&path, "&metric_key=");
        dt_rest_escape(&path, name);
        dt_strbuf_add_str(&path, token.length > 0 ? "&page_token=" : "");
        dt_rest_escape(&path, token.data);
        json_decref(answer);
        answer = NULL;
        DT_TRY(dt_rest_get(r->rest, &answer, path.data, err));
        DT_TRY(points_add(r, run, metric, answer, err));
        next_page(&token, answer);
    } while (token.length > 0);
out:
    json_decref(answer);
    dt_strbuf_release(&path);
    dt_strbuf_release(&token);
    return st;
}

/* --- a run */

static bool is_ours(const json_t *data)
{
    const json_t *tags = json_object_get(data, "tags"), *tag;
    size_t at;

    json_array_foreach(tags, at, tag) {
        if (strcmp(text_of(tag, "key"), DT_MLFLOW_TAG) == 0)
            return true;
    }
    return false;
}

/* Finds the index of the run. Names are made unique with the id: MLflow allows duplicates. */
static void run_name(int32_t *run, reading *r, const json_t *info)
{
    const char *name = text_of(info, "run_name"), *id = text_of(info, "run_id");

    if (name[0] == '\0')
        name = id;
    if (json_object_get(r->seen, name) != NULL)
        name = dt_arena_printf(r->out->arena, "%s-%.*s", name, ID_SHOWN, id);
    json_object_set_new(r->seen, name, json_true());
    dt_import_name(run, &r->out->runs, name, r->out->arena);
}

/* Stores {"params": {...}} as the recipe, so that compare shows them. */
static void params_read(reading *r, int32_t run, const json_t *data)
{
    const json_t *params = json_object_get(data, "params"), *param;
    json_t *recipe = json_object(), *object = json_object();
    dt_strbuf text;
    size_t at;

    json_array_foreach(params, at, param) {
        json_object_set(object, text_of(param, "key"), json_object_get(param, "value"));
    }
    json_object_set_new(recipe, "params", object);
    dt_strbuf_init(&text);
    dt_json_write(&text, recipe);
    dt_import_recipe(r->out, run, text.data);
    dt_strbuf_release(&text);
    json_decref(recipe);
}

static dt_status run_read(reading *r, const json_t *there, dt_error *err)
{
    const json_t *info = json_object_get(there, "info"), *data = json_object_get(there, "data");
    const json_t *metrics = json_object_get(data, "metrics"), *metric;
    dt_status st = DT_OK;
    int32_t run;
    size_t at;

    if (is_ours(data))
        return DT_OK;
    run_name(&run, r, info);
    params_read(r, run, data);
    json_array_foreach(metrics, at, metric) {
        DT_TRY(metric_read(r, run, text_of(info, "run_id"), text_of(metric, "key"), err));
    }
out:
    return st;
}

/* --- searches */

/* Reads the next page of a search. *token is "" before the first page and after the last. *answer:
 * the previous page or NULL; replaced. question: the search; borrowed, and changed to ask for the
 * page. */
static dt_status search(json_t **answer, dt_strbuf *token, reading *r, const char *path,
                        json_t *question, dt_error *err)
{
    dt_status st = DT_OK;

    json_decref(*answer);
    *answer = NULL;
    json_object_set_new(question, "max_results", json_integer(RUNS_PAGE));
    json_object_set_new(question, "page_token", json_string(token->data));
    DT_TRY(dt_rest_post(r->rest, answer, path, json_incref(question), err));
    next_page(token, *answer);
out:
    return st;
}

/* Finds the ids of all experiments, or of the one called `name`. */
static dt_status experiments_find(json_t **ids, reading *r, const char *name, dt_error *err)
{
    json_t *question = json_object(), *answer = NULL, *experiment;
    dt_strbuf token;
    dt_status st = DT_OK;
    size_t at;

    *ids = json_array();
    dt_strbuf_init(&token);
    do {
        DT_TRY(search(&answer, &token, r, API "experiments/search", question, err));
        json_array_foreach(json_object_get(answer, "experiments"), at, experiment) {
            if (name == NULL || strcmp(text_of(experiment, "name"), name) == 0)
                json_array_append(*ids, json_object_get(experiment, "experiment_id"));
        }
    } while (token.length > 0);
    if (json_array_size(*ids) == 0)
        DT_THROW(err, DT_ERR_USAGE, "MLflow has no experiment%s%s%s", name != NULL ? " '" : "",
                 name != NULL ? name : "", name != NULL ? "'" : "");
out:
    json_decref(answer);
    json_decref(question);
    dt_strbuf_release(&token);
    return st;
}

static dt_status runs_read(reading *r, json_t *ids, dt_error *err)
{
    json_t *question = json_pack("{sO}", "experiment_ids", ids), *answer = NULL, *run;
    dt_strbuf token;
    dt_status st = DT_OK;
    size_t at;

    dt_strbuf_init(&token);
    do {
        DT_TRY(search(&answer, &token, r, API "runs/search", question, err));
        json_array_foreach(json_object_get(answer, "runs"), at, run) {
            DT_TRY(run_read(r, run, err));
        }
    } while (token.length > 0);
out:
    json_decref(answer);
    json_decref(question);
    dt_strbuf_release(&token);
    return st;
}

static dt_status read_mlflow(dt_imported *out, const dt_import_source *source, dt_error *err)
{
    reading r = {.out = out, .seen = json_object()};
    json_t *ids = NULL;
    dt_status st;

    DT_TRY(dt_mlflow_open(&r.rest, source->path, err));
    DT_TRY(
        experiments_find(&ids, &r, dt_arguments_get(source->call->args, "experiment")->text, err));
    DT_TRY(runs_read(&r, ids, err));
out:
    json_decref(ids);
    json_decref(r.seen);
    dt_rest_close(r.rest);
    return st;
}

const dt_import_format dt_import_mlflow = {
    .name = "mlflow", .has_experiment = true, .read = read_mlflow};
