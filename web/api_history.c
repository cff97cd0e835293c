/* api_history: what a run leaves behind, each with a cursor or a bound: the points of its curves,
 * its checkpoints, its events.
 */
#include <string.h>

#include "base/file.h"
#include "web/request.h"
#include "web/run_json.h"

#include "base/banned.h"

#define POINTS_DEFAULT 1000
#define POINTS_MOST    100000
#define EVENTS_DEFAULT 200
#define EVENTS_MOST    1000

/* One name's points as three columns, from points[*at] on; moves *at past them. */
static json_t *series_json(const dt_metric *points, int64_t count, int64_t *at)
{
    json_t *steps = json_array(), *values = json_array(), *times = json_array();
    const char *name = points[*at].name;

    for (; *at < count && strcmp(points[*at].name, name) == 0; ++*at) {
        json_array_append_new(steps, json_integer(points[*at].step));
        json_array_append_new(values, dt_json_number(points[*at].value));
        json_array_append_new(times, json_integer(points[*at].time_ms));
    }
    return json_pack("{so so so}", "step", steps, "value", values, "time_ms", times);
}

dt_status dt_web_metrics(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    json_t *series = json_object();
    int64_t after, most, count;
    dt_metric *points;
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&after, request, "after", -1, -1, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&most, request, "most", POINTS_DEFAULT, 1, POINTS_MOST, err));
    DT_TRY(dt_store_metric_list(request->store, &points, &count, run.id,
                                dt_web_argument(request, "name"), after, most, request->arena,
                                err));
    for (int64_t at = 0; at < count;) {
        const char *name = points[at].name;

        json_object_set_new(series, name, series_json(points, count, &at));
    }
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so sI sO}", "run", dt_web_string_json(run.id), "attempt",
                                     (json_int_t)run.attempt, "series", series),
                           err);
out:
    json_decref(series);
    return st;
}

/* Whether a checkpoint's directory is still there; relative ones are below the run's folder. */
static bool checkpoint_present(const dt_web_request *request, const char *run, const char *path)
{
    if (path[0] != '/')
        path = dt_arena_printf(request->arena, "%s/runs/%s/checkpoints/%s", request->folder, run,
                               path);
    return path != NULL && dt_file_exists(path);
}

dt_status dt_web_checkpoints(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_store_checkpoint *checkpoints;
    json_t *list = json_array();
    dt_status st = DT_OK;
    int64_t count;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_store_checkpoint_list(request->store, &checkpoints, &count, run.id, request->arena,
                                    err));
    for (int64_t i = 0; i < count; i++) {
        const dt_store_checkpoint *c = &checkpoints[i];

        json_array_append_new(
            list, json_pack("{sI sI so so sI so so so sb}", "attempt", (json_int_t)c->attempt,
                            "step", (json_int_t)c->step, "path", dt_web_string_json(c->path),
                            "digest", dt_web_string_json(c->digest), "bytes", (json_int_t)c->bytes,
                            "time_ms", dt_web_time_json(c->time_ms), "valid_loss",
                            dt_json_number(c->valid_loss), "seconds", dt_json_number(c->seconds),
                            "present", (int)checkpoint_present(request, run.id, c->path)));
    }
    st = dt_web_reply_json(
        reply, 200, json_pack("{so sO}", "run", dt_web_string_json(run.id), "checkpoints", list),
        err);
out:
    json_decref(list);
    return st;
}

/* Events that have a view of their own (curves, logs) are left out; `next` counts them all. */
static bool is_shown(const char *kind)
{
    return strcmp(kind, "metrics") != 0 && strcmp(kind, "log") != 0 && strcmp(kind, "phase") != 0;
}

dt_status dt_web_events(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t after, limit, count, next;
    json_t *list = json_array();
    dt_store_event *events;
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&after, request, "after", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&limit, request, "limit", EVENTS_DEFAULT, 1, EVENTS_MOST, err));
    DT_TRY(dt_store_event_list(request->store, &events, &count, run.id, after, limit,
                               request->arena, err));
    next = count > 0 ? events[count - 1].id : after;
    for (int64_t i = 0; i < count; i++) {
        const dt_store_event *e = &events[i];
        json_t *detail;

        if (!is_shown(e->kind))
            continue;
        if (dt_json_parse(&detail, e->json, strlen(e->json), "event", NULL) != DT_OK)
            detail = json_null();
        json_array_append_new(list,
                              json_pack("{sI sI so so so so so}", "id", (json_int_t)e->id,
                                        "attempt", (json_int_t)e->attempt, "node",
                                        e->node >= 0 ? json_integer(e->node) : json_null(), "rank",
                                        e->rank >= 0 ? json_integer(e->rank) : json_null(),
                                        "time_ms", dt_web_time_json(e->time_ms), "event",
                                        dt_web_string_json(e->kind), "detail", detail));
    }
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so sO sI sb}", "run", dt_web_string_json(run.id), "events",
                                     list, "next", (json_int_t)next, "more", (int)(count == limit)),
                           err);
out:
    json_decref(list);
    return st;
}
