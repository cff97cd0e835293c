/* api_runs: serves the list of runs, one run with its attempts and ranks, its recipe, why it is slow, checkpoints,
 * evaluations and events, and the health check. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/metric_kinds.h"
#include "store/why.h"
#include "web/web_int.h"

/* --- runs */

#define RUNS_MOST 1000

typedef struct listing {
    dt_arena ids_arena, arena; /* `arena` is that of the current run */
    dt_web_query query;
    const char **ids;
    int64_t count, total, active, offset, at, now_ms;
    bool begun, any;
} listing;

static dt_status run_add(listing *l, dt_store *store, dt_strbuf *out, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *json;
    dt_status st;
    dt_run run;

    dt_arena_reset(&l->arena);
    st = dt_store_run_find(store, &run, l->ids[l->at++], &l->arena, &problem);
    if (st == DT_ERR_NOT_FOUND)
        return DT_OK; /* the run was removed meanwhile */
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    st = dt_web_row_json(&json, store, &run, &l->query, l->now_ms, &l->arena, err);
    if (st != DT_OK)
        return st;
    dt_strbuf_add_str(out, l->any ? "," : "");
    dt_json_write(out, json);
    json_decref(json);
    l->any = true;
    return DT_OK;
}

static dt_status runs_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    listing *l = state;
    dt_status st = DT_OK;

    if (!l->begun)
        dt_strbuf_add_fmt(
            out, "{\"time_ms\":%lld,\"total\":%lld,\"active\":%lld,\"offset\":%lld,\"runs\":[",
            (long long)l->now_ms, (long long)l->total, (long long)l->active, (long long)l->offset);
    l->begun = true;
    while (st == DT_OK && l->at < l->count && out->length < DT_WEB_PART_BYTES)
        st = run_add(l, store, out, err);
    *more = l->at < l->count;
    if (st == DT_OK && !*more)
        dt_strbuf_add_fmt(out, "],\"api\":%d}\n", DT_WEB_API_VERSION);
    return st;
}

static void listing_free(void *state)
{
    listing *l = state;

    dt_arena_release(&l->ids_arena);
    dt_arena_release(&l->arena);
    free(l);
}

dt_status dt_web_runs(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    listing *l = dt_calloc(1, sizeof(*l));
    dt_status st = DT_OK;

    dt_web_reply_stream(reply, runs_next, listing_free, l);
    dt_arena_init(&l->ids_arena, 0);
    dt_arena_init(&l->arena, 0);
    l->now_ms = request->now_ms;
    DT_TRY(dt_web_requested_query(&l->query, request, RUNS_MOST, &l->ids_arena, err));
    l->offset = l->query.search.offset;
    DT_TRY(dt_store_run_search(request->store, &l->ids, &l->count, &l->total, &l->query.search,
                               &l->ids_arena, err));
    DT_TRY(dt_store_run_count_active(request->store, &l->active, err));
out:
    return st;
}

/* Parses the changes made by --set; damaged JSON gives an empty list. */
static json_t *changes_json(const dt_attempt *attempt)
{
    json_t *changes;

    if (dt_json_parse(&changes, attempt->changes_json, strlen(attempt->changes_json), "changes",
                      NULL) != DT_OK)
        return json_array();
    return changes;
}

static json_t *attempts_json(const dt_attempt *attempts, int64_t count)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++) {
        const dt_attempt *a = &attempts[i];

        json_array_append_new(
            list,
            json_pack("{sI ss sI so so so so so so so}", "attempt", (json_int_t)a->attempt, "state",
                      dt_run_state_name(a->state), "start_step", (json_int_t)a->start_step,
                      "created_ms", dt_web_time_json(a->created_ms), "started_ms",
                      dt_web_time_json(a->started_ms), "ended_ms", dt_web_time_json(a->ended_ms),
                      "exit_code", a->exit_code >= 0 ? json_integer(a->exit_code) : json_null(),
                      "reason", dt_web_string_json(a->reason), "elapsed_seconds",
                      a->elapsed_ms >= 0 ? dt_json_number((double)a->elapsed_ms / 1000)
                                         : json_null(),
                      "changes", changes_json(a)));
    }
    return list;
}

static json_t *ranks_json(const dt_rank *ranks, int64_t count, const dt_node *node,
                          const dt_activity *activity)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++) {
        const dt_rank *r = &ranks[i];

        if (r->node != node->node)
            continue;
        json_array_append_new(
            list,
            json_pack("{sI so so so so so so}", "rank", (json_int_t)r->rank, "pid",
                      r->pid > 0 ? json_integer(r->pid) : json_null(), "device",
                      dt_web_string_json(r->device), "state", dt_web_string_json(r->state),
                      "activity", dt_web_string_json(dt_activity_of_rank(activity, node, r)),
                      "exit_code", r->exit_code >= 0 ? json_integer(r->exit_code) : json_null(),
                      "exit_signal",
                      r->exit_signal > 0 ? json_integer(r->exit_signal) : json_null()));
    }
    return list;
}

static dt_status nodes_json(json_t *list, dt_web_request *request, const dt_run *run,
                            const dt_activity *activity, dt_error *err)
{
    int64_t node_count, rank_count;
    dt_status st = DT_OK;
    dt_node *nodes;
    dt_rank *ranks;

    DT_TRY(dt_store_node_list(request->store, &nodes, &node_count, run->id, run->attempt,
                              request->arena, err));
    DT_TRY(dt_store_rank_list(request->store, &ranks, &rank_count, run->id, run->attempt,
                              request->arena, err));
    for (int64_t i = 0; i < node_count; i++)
        json_array_append_new(list, json_pack("{sI so so so}", "node", (json_int_t)nodes[i].node,
                                              "host", dt_web_string_json(nodes[i].name), "state",
                                              dt_web_string_json(nodes[i].state), "ranks",
                                              ranks_json(ranks, rank_count, &nodes[i], activity)));
out:
    return st;
}

dt_status dt_web_run_view_json(json_t **out, dt_web_request *request, dt_error *err)
{
    json_t *nodes = json_array(), *names = json_array(), *of_nodes = json_array(), *run_json;
    int64_t attempt_count, name_count;
    dt_store_curves curves;
    dt_activity activity;
    dt_attempt *attempts;
    const char **metrics;
    dt_status st = DT_OK;
    double speed;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_store_attempt_list(request->store, &attempts, &attempt_count, run.id, request->arena,
                                 err));
    DT_TRY(
        dt_store_metric_names(request->store, &metrics, &name_count, run.id, request->arena, err));
    DT_TRY(dt_store_curves_find(request->store, &curves, run.id, DT_METRIC_SYSTEM, request->arena,
                                err));
    DT_TRY(dt_activity_read(&activity, request->store, &run, request->now_ms, request->arena, err));
    DT_TRY(nodes_json(nodes, request, &run, &activity, err));
    speed = dt_web_speed(&run, &activity);
    if (dt_run_state_is_terminal(run.state))
        DT_TRY(dt_store_run_mean_speed(request->store, &speed, &run, request->arena, err));
    for (int64_t i = 0; i < name_count; i++)
        json_array_append_new(names, dt_web_string_json(metrics[i]));
    for (int64_t i = 0; i < curves.count; i++)
        json_array_append_new(of_nodes, dt_web_string_json(curves.curves[i].name));
    run_json = dt_web_run_json(&run, &activity, request->now_ms);
    json_object_set_new(run_json, "mean_tokens_per_second", dt_json_number(speed));
    json_object_set_new(
        run_json, "eta_seconds",
        dt_json_number(dt_web_eta_seconds(&run, &activity, attempts[attempt_count - 1].start_step,
                                          request->now_ms)));
    *out = json_pack("{sI so so sO sO sO}", "time_ms", (json_int_t)request->now_ms, "run", run_json,
                     "attempts", attempts_json(attempts, attempt_count), "nodes", nodes, "metrics",
                     names, "system", of_nodes);
out:
    json_decref(nodes);
    json_decref(names);
    json_decref(of_nodes);
    return st;
}

dt_status dt_web_run_view(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    json_t *view = NULL;
    dt_status st = dt_web_run_view_json(&view, request, err);

    return st == DT_OK ? dt_web_reply_json(reply, 200, view, err) : st;
}

dt_status dt_web_recipe(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    json_t *resolved;
    dt_status st;
    dt_run run;

    st = dt_web_run(&run, request, err);
    if (st != DT_OK)
        return st;
    if (dt_json_parse(&resolved, run.recipe_json, strlen(run.recipe_json), "recipe", NULL) != DT_OK)
        resolved = json_null(); /* the recipe's text is still shown */
    return dt_web_reply_json(reply, 200,
                             json_pack("{so so so so so}", "run", dt_web_string_json(run.id),
                                       "path", dt_web_string_json(run.recipe_path), "hash",
                                       dt_web_string_json(run.recipe_hash), "text",
                                       dt_web_string_json(run.recipe_text), "resolved",
                                       dt_web_value_json(resolved)),
                             err);
}

dt_status dt_web_why(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *why;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    why = dt_why_read(dt_arena_printf(request->arena, "%s/runs/%s", request->folder, run.id),
                      run.attempt);
    DT_TRY(dt_web_reply_json(reply, 200,
                             json_pack("{so so}", "run", dt_web_string_json(run.id), "why",
                                       why != NULL ? dt_web_value_json(why) : json_null()),
                             err));
out:
    return st;
}

dt_status dt_web_health(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t count;
    dt_run *runs;
    dt_status st;

    st = dt_store_run_list(request->store, &runs, &count, -1, 1, request->arena, err);
    if (st != DT_OK)
        return st;
    return dt_web_reply_json(reply, 200, json_pack("{ss}", "status", "ok"), err);
}

/* --- checkpoints and events of a run */

#define EVENTS_DEFAULT 200
#define EVENTS_MOST    1000
#define EVENTS_READ    32 /* per query: an event may have some kilobytes */

/* Returns true if the checkpoint's directory still exists. Relative paths are below the run's folder. */
static bool checkpoint_present(const dt_web_request *request, const char *run,
                               const dt_store_checkpoint *checkpoint)
{
    dt_store_checkpoint absolute = *checkpoint;

    if (checkpoint->path[0] != '/')
        absolute.path = dt_arena_printf(request->arena, "%s/runs/%s/checkpoints/%s",
                                        request->folder, run, checkpoint->path);
    return dt_store_checkpoint_exists(&absolute);
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
            list,
            json_pack("{sI sI so so sI so so so so sb}", "attempt", (json_int_t)c->attempt, "step",
                      (json_int_t)c->step, "path", dt_web_string_json(c->path), "digest",
                      dt_web_string_json(c->digest), "bytes", (json_int_t)c->bytes, "time_ms",
                      dt_web_time_json(c->time_ms), "valid_loss", dt_json_number(c->valid_loss),
                      "score", dt_json_number(c->score), "seconds", dt_json_number(c->seconds),
                      "present", (int)checkpoint_present(request, run.id, c)));
    }
    st = dt_web_reply_json(
        reply, 200, json_pack("{so sO}", "run", dt_web_string_json(run.id), "checkpoints", list),
        err);
out:
    json_decref(list);
    return st;
}

/* --- evaluations of a run */

#define EVALUATIONS_DEFAULT 6
#define EVALUATIONS_MOST    100000 /* as of points */

/* Returns the result of a task; null if it is not JSON. */
static json_t *result_json(const dt_store_evaluation *of)
{
    json_t *result;

    if (dt_json_parse(&result, of->result, strlen(of->result), "evaluation", NULL) != DT_OK)
        return json_null();
    return dt_web_value_json(result);
}

/* Returns the newest result of each task, with its step. */
static json_t *newest_json(const dt_store_evaluation *rows, int64_t count)
{
    json_t *newest = json_object(), *result;

    for (int64_t i = 0; i < count; i++) {
        result = result_json(&rows[i]);
        if (json_is_object(result))
            json_object_set_new(result, "step", json_integer(rows[i].step));
        json_object_set_new(newest, rows[i].task, result);
    }
    return newest;
}

static bool begins_step(const dt_store_evaluation *rows, int64_t i)
{
    return i == 0 || rows[i].step != rows[i - 1].step;
}

/* Returns the first step and the last most - 1 steps. */
static json_t *steps_json(const dt_store_evaluation *rows, int64_t count, int64_t total,
                          int64_t most)
{
    json_t *list = json_array(), *step = NULL, *tasks = NULL;
    int64_t at = 0; /* steps that have begun */

    for (int64_t i = 0; i < count; i++) {
        at += begins_step(rows, i);
        if (at > 1 && at <= total - (most - 1))
            continue;
        if (begins_step(rows, i)) {
            tasks = json_object();
            step = json_pack("{sI so}", "step", (json_int_t)rows[i].step, "tasks", tasks);
            json_array_append_new(list, step);
        }
        json_object_set_new(step, "attempt", json_integer(rows[i].attempt));
        json_object_set_new(step, "time_ms", dt_web_time_json(rows[i].time_ms));
        json_object_set_new(tasks, rows[i].task, result_json(&rows[i]));
    }
    return list;
}

dt_status dt_web_evaluations(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    int64_t count, total = 0, most;
    dt_store_evaluation *rows;
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(
        dt_web_argument_int(&most, request, "most", EVALUATIONS_DEFAULT, 1, EVALUATIONS_MOST, err));
    DT_TRY(dt_store_evaluation_list(request->store, &rows, &count, run.id, request->arena, err));
    for (int64_t i = 0; i < count; i++)
        total += begins_step(rows, i);
    st = dt_web_reply_json(reply, 200,
                           json_pack("{so sI so so}", "run", dt_web_string_json(run.id), "steps",
                                     (json_int_t)total, "evaluations",
                                     steps_json(rows, count, total, most), "newest",
                                     newest_json(rows, count)),
                           err);
out:
    return st;
}

typedef struct events {
    dt_arena arena; /* of the current read */
    char *run;
    int64_t next, left; /* id of the last event that was read; number of events left to read */
    bool begun, any;
} events;

static dt_status events_read(events *e, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    int64_t count, wanted = e->left < EVENTS_READ ? e->left : EVENTS_READ;
    dt_store_event *list;
    dt_status st;

    dt_arena_reset(&e->arena);
    st = dt_store_event_list(store, &list, &count, e->run, e->next, wanted, &e->arena, err);
    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        json_t *event;

        e->next = list[i].id;
        if (!dt_web_event_is_shown(list[i].kind))
            continue;
        event = dt_web_event_json(&list[i]);
        dt_strbuf_add_str(out, e->any ? "," : "");
        dt_json_write(out, event);
        json_decref(event);
        e->any = true;
    }
    e->left -= count;
    *more = count == wanted && e->left > 0;
    if (!*more) /* a full page may be followed by more events */
        dt_strbuf_add_fmt(out, "],\"next\":%lld,\"more\":%s,\"api\":%d}\n", (long long)e->next,
                          count == wanted ? "true" : "false", DT_WEB_API_VERSION);
    return DT_OK;
}

static dt_status events_next(void *state, dt_store *store, dt_strbuf *out, bool *more,
                             dt_error *err)
{
    dt_status st = DT_OK;
    events *e = state;

    if (!e->begun) {
        json_t *run = dt_web_string_json(e->run);

        dt_strbuf_add_str(out, "{\"run\":");
        dt_json_write(out, run);
        dt_strbuf_add_str(out, ",\"events\":[");
        json_decref(run);
        e->begun = true;
    }
    do
        st = events_read(e, store, out, more, err);
    while (st == DT_OK && *more && out->length < DT_WEB_PART_BYTES);
    return st;
}

static void events_free(void *state)
{
    events *e = state;

    dt_arena_release(&e->arena);
    free(e->run);
    free(e);
}

dt_status dt_web_events(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    events *e = dt_calloc(1, sizeof(*e));
    dt_status st = DT_OK;
    dt_run run;

    dt_web_reply_stream(reply, events_next, events_free, e);
    dt_arena_init(&e->arena, 0);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&e->next, request, "after", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&e->left, request, "limit", EVENTS_DEFAULT, 1, EVENTS_MOST, err));
    e->run = dt_strdup(run.id);
out:
    return st;
}
