/* mlflow: uploads runs to an MLflow tracking server.
 *
 * Repeated    a run is found on the server by its tag, and the points of a metric by its newest step: only
 *             missing data are sent, also after an interruption, and nothing twice
 * --follow    repeats the upload until the runs have ended. It is a separate process that reads the store: a slow or
 *             dead server does not delay training, and gets all missing data once it is back. Refusals (a wrong
 *             token, a run deleted there) end it only after a while (mlflow.h)
 * Undone      MLflow cannot delete points: of a step that a later attempt repeats it keeps the first values
 */
#include "runner/export/mlflow.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"

#define TOKEN    "MLFLOW_TRACKING_TOKEN"
#define NAME     "MLFLOW_TRACKING_USERNAME"
#define PASSWORD "MLFLOW_TRACKING_PASSWORD"
#define TIMEOUT  "MLFLOW_HTTP_REQUEST_TIMEOUT"
#define RETRIES  "MLFLOW_HTTP_REQUEST_MAX_RETRIES"

/* Reads an environment variable; NULL if unset or empty. DT_ERR_USAGE if it has a control character. */
static dt_status variable(const char **out, const char *name, dt_error *err)
{
    const char *text = getenv(name);

    *out = text != NULL && text[0] != '\0' ? text : NULL;
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return DT_FAIL(err, DT_ERR_USAGE, "%s contains a %s", name,
                           *text == '\r' || *text == '\n' ? "line break" : "control character");
    return DT_OK;
}

/* Reads a number from an environment variable; 0 if unset. */
static dt_status limit(int *out, const char *name, int least, int most, dt_error *err)
{
    const char *text;
    char *end;
    long value;
    dt_status st;

    *out = 0;
    DT_TRY(variable(&text, name, err));
    if (text == NULL)
        return DT_OK;
    value = strtol(text, &end, 10);
    if (*end != '\0' || value < least || value > most)
        DT_THROW(err, DT_ERR_USAGE, "%s: expected a number from %d to %d", name, least, most);
    *out = (int)value;
out:
    return st;
}

static dt_status access_find(dt_rest_access *access, dt_error *err)
{
    int seconds, retries;
    dt_status st;

    DT_TRY(variable(&access->name, NAME, err));
    DT_TRY(variable(&access->password, PASSWORD, err));
    DT_TRY(variable(&access->token, TOKEN, err));
    DT_TRY(limit(&seconds, TIMEOUT, 1, 3600, err));
    DT_TRY(limit(&retries, RETRIES, 0, 100, err));
    access->try_seconds = seconds;
    access->tries = getenv(RETRIES) != NULL && getenv(RETRIES)[0] != '\0' ? retries + 1 : 0;
    if (access->name != NULL && access->password != NULL) {
        access->remedy = access->token != NULL ? "used " NAME " and " PASSWORD
                                                 ", which override " TOKEN
                                               : "used " NAME " and " PASSWORD;
        access->token = NULL;
        return DT_OK;
    }
    if (access->token != NULL)
        access->remedy = "used " TOKEN;
    else if (access->name != NULL)
        access->remedy = NAME " needs " PASSWORD ", which is not set";
    else
        access->remedy = "set " NAME " and " PASSWORD ", or " TOKEN;
    access->name = access->password = NULL;
out:
    return st;
}

/* Whether the host is this machine. */
static bool is_local(const char *host)
{
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");

    return (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == length) ||
           (length == 5 && strncmp(host, "[::1]", 5) == 0) ||
           (length == 9 && strncasecmp(host, "localhost", 9) == 0) ||
           (length > 10 && strncasecmp(host + length - 10, ".localhost", 10) == 0);
}

dt_status dt_mlflow_open(dt_rest **out, const char *url, dt_error *err)
{
    dt_rest_access access = {0};
    dt_status st;

    *out = NULL;
    DT_TRY(access_find(&access, err));
    DT_TRY(dt_rest_open(out, url, &access, err));
    if (strncmp(url, "http://", 7) == 0 && !is_local(url + 7) &&
        (access.token != NULL || access.name != NULL))
        dt_report_say("warning: '%s' is unencrypted http; others on the network can read %s", url,
                      access.token != NULL ? TOKEN : PASSWORD);
out:
    return st;
}

#define API            "api/2.0/mlflow/"
#define FOLLOW_SECONDS 5.0

typedef struct tracking {
    const dt_export_job *job;
    dt_rest *rest;
    dt_arena *arena;        /* of one round of uploads */
    const char *experiment; /* its id, in the job's arena */
} tracking;

/* Posts and ignores the answer. */
static dt_status post(const tracking *t, const char *path, json_t *body, dt_error *err)
{
    json_t *answer;
    dt_status st = dt_rest_post(t->rest, &answer, path, body, err);

    json_decref(answer);
    return st;
}

/* --- the experiment */

static dt_status experiment_take(tracking *t, const json_t *id, dt_error *err)
{
    if (!json_is_string(id))
        return DT_FAIL(err, DT_ERR_CORRUPT, "MLflow's answer has no experiment_id");
    t->experiment = dt_arena_strdup(t->job->call->arena, json_string_value(id));
    return DT_OK;
}

/* Looks up an experiment by name; *there is false if it does not exist. */
static dt_status experiment_ask(tracking *t, bool *there, const char *name, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *answer = NULL;
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_str(&path, API "experiments/get-by-name?experiment_name=");
    dt_rest_escape(&path, name);
    st = dt_rest_get(t->rest, &answer, path.data, &problem);
    *there = st == DT_OK;
    if (st == DT_OK)
        st = experiment_take(
            t, json_object_get(json_object_get(answer, "experiment"), "experiment_id"), err);
    else
        st = st == DT_ERR_NOT_FOUND ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
    json_decref(answer);
    dt_strbuf_release(&path);
    return st;
}

/* Finds an experiment or creates it. Before a retry it is looked up: the answer to a successful
 * creation may be lost. */
static dt_status experiment_find(tracking *t, const char *name, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *answer = NULL;
    bool there;
    dt_status st;

    for (int tries = 0;; tries++) {
        if (tries > 0 && !dt_rest_pause(t->rest, tries))
            return DT_FAIL(err, DT_ERR_BUSY, "%s", problem.message);
        DT_TRY(experiment_ask(t, &there, name, err));
        if (there)
            return DT_OK;
        dt_error_clear(&problem);
        st = dt_rest_post_once(t->rest, &answer, API "experiments/create",
                               json_pack("{so}", "name", dt_json_text(name)), &problem);
        if (st == DT_OK)
            break;
        if (st != DT_ERR_BUSY)
            return DT_FAIL(err, st, "%s", problem.message);
    }
    st = experiment_take(t, json_object_get(answer, "experiment_id"), err);
out:
    json_decref(answer);
    return st;
}

/* --- a run */

/* Finds the run on the server by its tag, with its newest points; NULL if there is none. */
static dt_status run_ask(json_t **out, const tracking *t, const dt_run *run, dt_error *err)
{
    json_t *answer;
    dt_status st = dt_rest_post(t->rest, &answer, API "runs/search",
                                dt_mlflow_search_body(t->experiment, run), err);

    *out = json_incref(json_array_get(json_object_get(answer, "runs"), 0));
    json_decref(answer);
    return st;
}

/* Finds the run or creates it. Before a retry it is looked up: the answer to a successful creation
 * may be lost. */
static dt_status run_find(json_t **out, const tracking *t, const dt_run *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *answer = NULL;
    dt_status st;

    for (int tries = 0;; tries++) {
        if (tries > 0 && !dt_rest_pause(t->rest, tries))
            return DT_FAIL(err, DT_ERR_BUSY, "%s", problem.message);
        DT_TRY(run_ask(out, t, run, err));
        if (*out != NULL)
            return DT_OK;
        dt_error_clear(&problem);
        st = dt_rest_post_once(t->rest, &answer, API "runs/create",
                               dt_mlflow_create_body(t->experiment, run), &problem);
        if (st == DT_OK)
            break;
        if (st != DT_ERR_BUSY)
            return DT_FAIL(err, st, "%s", problem.message);
    }
    *out = json_incref(json_object_get(answer, "run"));
    json_decref(answer);
out:
    return st;
}

static dt_status params_send(const tracking *t, const char *run_id, const json_t *there,
                             const dt_run *run, dt_error *err)
{
    json_t *params =
        dt_mlflow_params(run, json_object_get(json_object_get(there, "data"), "params"));
    dt_status st = DT_OK;

    while (json_array_size(params) > 0) {
        json_t *some = json_array();

        while (json_array_size(params) > 0 && json_array_size(some) < DT_MLFLOW_PARAMS_MOST) {
            json_array_append(some, json_array_get(params, 0));
            json_array_remove(params, 0);
        }
        DT_TRY(post(t, API "runs/log-batch", dt_mlflow_batch_body(run_id, "params", some), err));
    }
out:
    json_decref(params);
    return st;
}

/* --- its points */

typedef struct batch {
    json_t *items;
    const char *name; /* in MLflow */
    int64_t step;     /* of the last one */
} batch;

static bool batch_add(void *context, const dt_metric *point)
{
    dt_metric named = *point;
    batch *b = context;

    named.name = b->name;
    json_array_append_new(b->items, dt_mlflow_metric(&named));
    b->step = point->step;
    return json_array_size(b->items) < DT_MLFLOW_METRICS_MOST;
}

static dt_status batch_send(const tracking *t, batch *b, const char *run_id, dt_error *err)
{
    json_t *items = b->items;

    b->items = json_array();
    return post(t, API "runs/log-batch", dt_mlflow_batch_body(run_id, "metrics", items), err);
}

/* Sends curve after curve, each in order of steps: after an interruption the server has their first
 * part. Curves may share a request. */
static dt_status points_send(const tracking *t, const char *run_id, const json_t *there,
                             const dt_run *run, dt_error *err)
{
    batch b = {.items = json_array()};
    dt_store_curves curves;
    dt_status st;

    DT_TRY(dt_store_curves_find(t->job->store, &curves, run->id, t->job->metric, t->arena, err));
    for (int64_t i = 0; i < curves.count; i++) {
        bool full = true;

        b.name = dt_mlflow_name(curves.curves[i].name, t->arena);
        b.step = dt_mlflow_last_step(there, b.name);
        while (full) {
            DT_TRY(dt_store_curve_scan(t->job->store, &curves, i, b.step, INT64_MAX, batch_add, &b,
                                       err));
            full = json_array_size(b.items) == DT_MLFLOW_METRICS_MOST;
            if (full)
                DT_TRY(batch_send(t, &b, run_id, err));
        }
    }
    if (json_array_size(b.items) > 0)
        DT_TRY(batch_send(t, &b, run_id, err));
out:
    json_decref(b.items);
    return st;
}

/* --- all of it */

static dt_status run_send(const tracking *t, const dt_run *run, dt_error *err)
{
    json_t *there = NULL;
    const char *run_id;
    dt_status st;

    DT_TRY(run_find(&there, t, run, err));
    run_id = json_string_value(json_object_get(json_object_get(there, "info"), "run_id"));
    if (run_id == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "MLflow's answer has no run_id");
    if (!dt_run_state_is_terminal(
            run->state)) /* show it as running; the end is sent after its points */
        DT_TRY(post(t, API "runs/update", dt_mlflow_update_body(run_id, run), err));
    DT_TRY(params_send(t, run_id, there, run, err));
    DT_TRY(points_send(t, run_id, there, run, err));
    DT_TRY(post(t, API "runs/log-batch", dt_mlflow_batch_body(run_id, "tags", dt_mlflow_tags(run)),
                err));
    if (dt_run_state_is_terminal(run->state))
        DT_TRY(post(t, API "runs/update", dt_mlflow_update_body(run_id, run), err));
out:
    json_decref(there);
    return st;
}

/* Sends the current state of all runs. *over: all have ended and everything was sent. */
static dt_status round_send(tracking *t, const char *experiment, bool *over, dt_error *err)
{
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    t->arena = &arena;
    *over = true;
    if (t->experiment == NULL)
        DT_TRY(experiment_find(t, experiment, err));
    for (size_t i = 0; i < t->job->count; i++) {
        dt_run run;

        DT_TRY(dt_store_run_find(t->job->store, &run, t->job->runs[i].id, &arena, err));
        *over = *over && dt_run_state_is_terminal(run.state);
        DT_TRY(run_send(t, &run, err));
    }
out:
    dt_arena_release(&arena);
    return st;
}

static void follow_note(const tracking *t, dt_status st, const char *problem)
{
    if (dt_mlflow_is_refusal(st))
        dt_report_note(t->job->call, "%s: retrying for %d min", problem,
                       (int)DT_MLFLOW_REFUSED_SECONDS_MOST / 60);
    else
        dt_report_note(t->job->call, "%s: retrying until the server answers", problem);
}

/* Repeats the upload until all runs have ended and the server has everything. Fails if refusals
 * last too long. */
static dt_status follow(tracking *t, const char *experiment, dt_error *err)
{
    dt_mlflow_patience patience = {0};
    dt_error problem = DT_ERROR_INIT;
    dt_status said = DT_OK, st = DT_OK;
    bool over = false;

    for (;;) {
        st = round_send(t, experiment, &over, &problem);
        if (st == DT_OK && said != DT_OK)
            dt_report_note(t->job->call, "the server answers again");
        if (st == DT_OK && over)
            return DT_OK;
        if (dt_mlflow_gives_up(&patience, st, dt_clock_monotonic_seconds()))
            return DT_FAIL(err, st, "%s", problem.message);
        if (st != DT_OK && st != said)
            follow_note(t, st, problem.message);
        said = st;
        dt_error_clear(&problem);
        dt_clock_sleep_seconds(FOLLOW_SECONDS);
    }
}

static dt_status write_mlflow(const dt_export_job *job, dt_error *err)
{
    const char *experiment = dt_arguments_get(job->call->args, "experiment")->text;
    tracking t = {.job = job};
    dt_status st;
    bool over;

    DT_TRY(dt_mlflow_open(&t.rest, job->target, err));
    st = dt_arguments_flag(job->call->args, "follow") ? follow(&t, experiment, err)
                                                      : round_send(&t, experiment, &over, err);
out:
    dt_rest_close(t.rest);
    return st;
}

const dt_export_format dt_export_mlflow = {
    .name = "mlflow",
    .target = "URL",
    .help = "a tracking server: points, recipe, tags and state of runs",
    .write = write_mlflow,
};
