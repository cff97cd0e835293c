/* The routes, through a real server. */
#include "web_support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_int_t int_at(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void assert_null_at(const json_t *object, const char *key)
{
    assert_true(json_is_null(json_object_get(object, key)));
}

/* A run in state running at step 20 of 100, with one rank. */
static void add_running(test_web *web, const char *id, const char *name)
{
    test_store *t = &web->rows;
    dt_rank rank = {
        .pid = 77, .device = "cpu", .state = "ready", .exit_code = -1, .exit_signal = -1};

    test_store_run(t, id, name);
    assert_good(t, dt_store_run_set_state(t->store, id, DT_RUN_RUNNING, -1, "", 2000, &t->err));
    assert_good(t, dt_store_node_set(t->store, id, 1,
                                     &(dt_node){.name = "localhost", .state = "running"}, &t->err));
    assert_good(t, dt_store_rank_set(t->store, id, 1, &rank, &t->err));
    for (int64_t step = 1; step <= 20; step++)
        assert_good(t, dt_store_metric_add(t->store, id, 1, step, "loss", 5.0 / (double)step,
                                           step * 100, &t->err));
    assert_good(t, dt_store_metric_add(t->store, id, 1, 20, "valid_loss", NAN, 2000, &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, id, 20, 0.25, NAN, 1234.5, 3000, &t->err));
}

static void test_the_list_is_newest_first_with_null_for_unknown_values(void **state)
{
    test_web *web = *state;
    json_t *answer, *run;

    answer = test_web_json(web, 200, "/api/v1/runs");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 0);
    json_decref(answer);

    test_store_run(&web->rows, "aa", "first");
    add_running(web, "bb", "<b>\"second\"</b>");
    answer = test_web_json(web, 200, "/api/v1/runs");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 2);
    run = json_array_get(json_object_get(answer, "runs"), 0);
    assert_string_equal(text_at(run, "id"), "bb");
    assert_string_equal(text_at(run, "name"), "<b>\"second\"</b>");
    assert_string_equal(text_at(run, "state"), "running");
    assert_int_equal(int_at(run, "step"), 20);
    assert_int_equal(int_at(run, "steps_total"), 100);
    assert_true(json_number_value(json_object_get(run, "loss")) == 0.25);
    assert_null_at(run, "valid_loss");
    assert_null_at(run, "ended_ms");
    assert_null_at(run, "exit_code");
    run = json_array_get(json_object_get(answer, "runs"), 1);
    assert_null_at(run, "started_ms");
    assert_null_at(run, "loss");
    assert_null_at(run, "elapsed_seconds");
    json_decref(answer);

    answer = test_web_json(web, 200, "/api/v1/runs?state=queued");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 1);
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs?limit=1");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 1);
    json_decref(answer);
}

static void test_a_long_list_and_many_events_come_in_parts_and_whole(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    json_t *answer, *list;
    char id[16];

    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof(id), "run%d", i);
        test_store_run(t, id, "a name of some length, that the list be longer than one part of it");
    }
    answer = test_web_json(web, 200, "/api/v1/runs?limit=290");
    list = json_object_get(answer, "runs");
    assert_int_equal(json_array_size(list), 290);
    for (int i = 0; i < 290; i++) {
        snprintf(id, sizeof(id), "run%d", 299 - i);
        assert_string_equal(text_at(json_array_get(list, (size_t)i), "id"), id);
    }
    json_decref(answer);

    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int i = 0; i < 900; i++) {
        dt_store_event event = {.attempt = 1,
                                .sequence = i,
                                .rank = -1,
                                .time_ms = 5,
                                .kind = i % 3 == 0 ? "metrics" : "started",
                                .json = "{\"text\":\"of some length, that the events be longer\"}"};

        assert_good(t, dt_store_event_add(t->store, "run7", &event, &t->err));
    }
    assert_good(t, dt_store_commit(t->store, &t->err));
    answer = test_web_json(web, 200, "/api/v1/runs/run7/events?limit=899");
    assert_int_equal(json_array_size(json_object_get(answer, "events")), 599);
    assert_true(json_is_true(json_object_get(answer, "more")));
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs/run7/events?limit=1000");
    assert_int_equal(json_array_size(json_object_get(answer, "events")), 600);
    assert_true(json_is_false(json_object_get(answer, "more")));
    json_decref(answer);
}

static void test_a_run_is_shown_with_attempts_nodes_and_metric_names(void **state)
{
    test_web *web = *state;
    json_t *answer, *node, *rank;

    add_running(web, "bb", "n");
    answer = test_web_json(web, 200, "/api/v1/runs/bb");
    assert_string_equal(text_at(json_object_get(answer, "run"), "id"), "bb");
    assert_true(json_number_value(json_object_get(json_object_get(answer, "run"), "eta_seconds")) >
                0);
    assert_int_equal(json_array_size(json_object_get(answer, "attempts")), 1);
    assert_int_equal(json_array_size(json_object_get(answer, "metrics")), 2);
    node = json_array_get(json_object_get(answer, "nodes"), 0);
    assert_string_equal(text_at(node, "host"), "localhost");
    rank = json_array_get(json_object_get(node, "ranks"), 0);
    assert_int_equal(int_at(rank, "pid"), 77);
    assert_null_at(rank, "exit_signal");
    json_decref(answer);
}

static void test_metrics_are_columns_with_a_cursor_and_a_bound(void **state)
{
    test_web *web = *state;
    json_t *answer, *series, *loss;

    add_running(web, "bb", "n");
    answer = test_web_json(web, 200, "/api/v1/runs/bb/metrics");
    series = json_object_get(answer, "series");
    assert_int_equal(json_object_size(series), 2);
    loss = json_object_get(series, "loss");
    assert_int_equal(json_array_size(json_object_get(loss, "step")), 20);
    assert_int_equal(json_array_size(json_object_get(loss, "value")), 20);
    assert_true(json_number_value(json_array_get(json_object_get(loss, "value"), 19)) == 0.25);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(loss, "time_ms"), 0)), 100);
    assert_true(json_is_null(json_array_get(
        json_object_get(json_object_get(series, "valid_loss"), "value"), 0))); /* NaN */
    json_decref(answer);

    answer = test_web_json(web, 200, "/api/v1/runs/bb/metrics?name=loss&after=15&most=3");
    series = json_object_get(answer, "series");
    assert_int_equal(json_object_size(series), 1);
    loss = json_object_get(json_object_get(series, "loss"), "step");
    assert_int_equal(json_array_size(loss), 3);
    assert_int_equal(json_integer_value(json_array_get(loss, 2)), 20);
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs/bb/metrics?name=nope");
    assert_int_equal(json_object_size(json_object_get(answer, "series")), 0);
    json_decref(answer);
}

/* Compares a curve with all its points in the store, thinned or not, in one or several parts. */
static void assert_curve(test_web *web, const char *name, int64_t after, int64_t most)
{
    test_store *t = &web->rows;
    json_t *answer, *series, *column;
    dt_metric *points;
    int64_t all, count;
    char path[128];

    assert_good(t, dt_store_metric_list(t->store, &points, &all, "bb", name, after, false,
                                        &t->arena, &t->err));
    count = all < most ? all : most;
    for (int64_t i = 0; i < count; i++) /* evenly spaced, including the first and the last */
        points[i] =
            points[count == 1
                       ? all - 1
                       : (int64_t)((double)i * (double)(all - 1) / (double)(count - 1) + 0.5)];
    snprintf(path, sizeof(path), "/api/v1/runs/bb/metrics?after=%lld&most=%lld", (long long)after,
             (long long)most);
    answer = test_web_json(web, 200, path);
    series = json_object_get(json_object_get(answer, "series"), name);
    assert_int_equal(json_array_size(json_object_get(series, "step")), count);
    assert_int_equal(json_array_size(json_object_get(series, "time_ms")), count);
    column = json_object_get(series, "value");
    assert_int_equal(json_array_size(column), count);
    for (int64_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(column, (size_t)i);

        assert_int_equal(
            json_integer_value(json_array_get(json_object_get(series, "step"), (size_t)i)),
            points[i].step);
        assert_int_equal(
            json_integer_value(json_array_get(json_object_get(series, "time_ms"), (size_t)i)),
            points[i].time_ms);
        assert_true(isnan(points[i].value)
                        ? json_is_null(value)
                        : json_is_real(value) && json_real_value(value) == points[i].value);
    }
    json_decref(answer);
}

static void test_a_long_curve_comes_in_parts_and_whole(void **state)
{
    static const int64_t mosts[] = {1, 2, 7, 1000, 1024, 1025, 3000, 4999, 5000, 100000};
    test_web *web = *state;
    test_store *t = &web->rows;
    int64_t attempt;

    add_running(web, "bb", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 21; step <= 4000; step++)
        assert_good(t, dt_store_metric_add(t->store, "bb", 1, step, "loss",
                                           step % 50 == 0 ? NAN : 5.0 / (double)(step / 2), step,
                                           &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "bb", DT_RUN_STOPPED, 4, "", 1, &t->err));
    assert_good(t,
                dt_store_attempt_add(t->store, "bb", 3000, 9000, "{}", "h", 2, &attempt, &t->err));
    /* 1000 points of the first attempt are undone. */
    for (int64_t step = 3000; step <= 5010; step++)
        assert_good(t, dt_store_metric_add(t->store, "bb", 2, step, "loss", (double)step, step * 2,
                                           &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
    for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
        assert_curve(web, "loss", -1, mosts[i]);
        assert_curve(web, "loss", 2990, mosts[i]);
    }
    assert_curve(web, "valid_loss", -1, 1000);
}

static void write_log(test_web *web, const char *run, int rank, const char *text, size_t length)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/runs/%s/logs", web->rows.folder, run);
    assert_good(&web->rows, dt_file_make_dirs(path, 0700, &web->rows.err));
    snprintf(path, sizeof(path), "%s/runs/%s/logs/rank-%d.log", web->rows.folder, run, rank);
    assert_good(&web->rows, dt_file_write_atomic(path, text, length, 0600, &web->rows.err));
}

static void test_the_tail_of_a_log_is_served_and_any_bytes_become_text(void **state)
{
    static const char log[] = "2026-01-01T00:00:00.000Z one\n"
                              "2026-01-01T00:00:01.000Z two \xff\xfe \x1b[31mred\x1b[0m\tx\n"
                              "2026-01-01T00:00:02.000Z \xe2\x82\xac <i>\n"
                              "word\n"
                              "2026-01-01T00:00:03.000Z not yet whole";
    test_web *web = *state;
    json_t *answer, *lines;

    add_running(web, "bb", "n");
    answer = test_web_json(web, 200, "/api/v1/runs/bb/logs?rank=0"); /* the file is missing */
    assert_int_equal(json_array_size(json_object_get(answer, "lines")), 0);
    json_decref(answer);

    write_log(web, "bb", 0, log, sizeof(log) - 1);
    answer = test_web_json(web, 200, "/api/v1/runs/bb/logs?rank=0&lines=3");
    lines = json_object_get(answer, "lines");
    assert_int_equal(json_array_size(lines), 3);
    assert_string_equal(text_at(json_array_get(lines, 0), "time"), "2026-01-01T00:00:01.000Z");
    assert_string_equal(text_at(json_array_get(lines, 0), "text"),
                        "two \xef\xbf\xbd\xef\xbf\xbd red\tx");
    assert_string_equal(text_at(json_array_get(lines, 1), "text"), "\xe2\x82\xac <i>");
    assert_string_equal(text_at(json_array_get(lines, 2), "text"), "word");
    json_decref(answer);
    json_decref(test_web_json(web, 404, "/api/v1/runs/bb/logs?rank=1"));
    json_decref(test_web_json(web, 400, "/api/v1/runs/bb/logs?rank=../../store.db"));
    json_decref(test_web_json(web, 400, "/api/v1/runs/bb/logs?rank=-1"));
}

static void test_checkpoints_show_whether_they_still_exist(void **state)
{
    dt_store_checkpoint checkpoint = {.attempt = 1,
                                      .step = 10,
                                      .bytes = 5,
                                      .time_ms = 9,
                                      .path = "step-10",
                                      .digest = "d",
                                      .valid_loss = NAN};
    test_web *web = *state;
    test_store *t = &web->rows;
    json_t *answer, *list;
    char path[256];

    add_running(web, "bb", "n");
    snprintf(path, sizeof(path), "%s/runs/bb/checkpoints/step-10", t->folder);
    assert_good(t, dt_file_make_dirs(path, 0700, &t->err));
    assert_good(t, dt_store_checkpoint_add(t->store, "bb", &checkpoint, &t->err));
    checkpoint.path = "/nowhere/step-20";
    checkpoint.step = 20;
    assert_good(t, dt_store_checkpoint_add(t->store, "bb", &checkpoint, &t->err));

    answer = test_web_json(web, 200, "/api/v1/runs/bb/checkpoints");
    list = json_object_get(answer, "checkpoints");
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(int_at(json_array_get(list, 0), "step"), 20);
    assert_true(json_is_false(json_object_get(json_array_get(list, 0), "present")));
    assert_true(json_is_true(json_object_get(json_array_get(list, 1), "present")));
    assert_null_at(json_array_get(list, 1), "valid_loss");
    json_decref(answer);
}

static void test_events_leave_out_what_has_its_own_view_but_count_it(void **state)
{
    const char *kinds[] = {"started", "metrics", "log", "checkpoint", "phase"};
    test_web *web = *state;
    test_store *t = &web->rows;
    json_t *answer, *list;

    add_running(web, "bb", "n");
    for (int i = 0; i < 5; i++) {
        dt_store_event event = {.attempt = 1,
                                .sequence = i,
                                .rank = i - 1,
                                .time_ms = 5,
                                .kind = kinds[i],
                                .json = i == 3 ? "no json" : "{\"step\":7}"};

        assert_good(t, dt_store_event_add(t->store, "bb", &event, &t->err));
    }
    answer = test_web_json(web, 200, "/api/v1/runs/bb/events");
    list = json_object_get(answer, "events");
    assert_int_equal(json_array_size(list), 2);
    assert_null_at(json_array_get(list, 0), "rank");
    assert_int_equal(int_at(json_object_get(json_array_get(list, 0), "detail"), "step"), 7);
    assert_null_at(json_array_get(list, 1), "detail"); /* damaged: shown without details */
    assert_int_equal(int_at(answer, "next"), 5);
    assert_true(json_is_false(json_object_get(answer, "more")));
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs/bb/events?after=1&limit=2");
    assert_int_equal(json_array_size(json_object_get(answer, "events")), 0);
    assert_int_equal(int_at(answer, "next"), 3);
    assert_true(json_is_true(json_object_get(answer, "more")));
    json_decref(answer);
}

static void test_the_recipe_is_served_as_written_and_resolved(void **state)
{
    test_web *web = *state;
    json_t *answer;

    test_store_run(&web->rows, "aa", "n");
    answer = test_web_json(web, 200, "/api/v1/runs/aa/recipe");
    assert_string_equal(text_at(answer, "text"), "name: x\n");
    assert_string_equal(text_at(answer, "path"), "/r.yaml");
    assert_string_equal(text_at(answer, "hash"), "h");
    assert_true(json_is_object(json_object_get(answer, "resolved")));
    json_decref(answer);
}

static void test_bad_arguments_are_named(void **state)
{
    static const char *const paths[] = {
        "/api/v1/runs?limit=0",
        "/api/v1/runs?limit=x",
        "/api/v1/runs?limit=1001",
        "/api/v1/runs?limit=",
        "/api/v1/runs?state=happy",
        "/api/v1/runs?state=%ff",
        "/api/v1/runs/aa/metrics?after=-2",
        "/api/v1/runs?offset=-1",
        "/api/v1/runs?sort=colour",
        "/api/v1/runs/aa/metrics?most=0",
        "/api/v1/runs/aa/metrics?buckets=0",
        "/api/v1/runs/aa/metrics?buckets=2001",
        "/api/v1/runs/aa/metrics?buckets=5&from=-1",
        "/api/v1/runs/aa/metrics?buckets=5&to=1e3",
        "/api/v1/runs/aa/metrics?most=99999999999999999999",
        "/api/v1/runs/aa/logs?lines=0",
        "/api/v1/runs/aa/events?after=1.5",
    };
    test_web *web = *state;

    test_store_run(&web->rows, "aa", "n");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        json_t *answer = test_web_json(web, 400, paths[i]);

        assert_int_equal(int_at(json_object_get(answer, "error"), "status"), 400);
        assert_non_null(strchr(text_at(json_object_get(answer, "error"), "message"), '\''));
        json_decref(answer);
    }
}

static void test_a_run_is_found_by_what_the_command_line_takes(void **state)
{
    static const char *const there[] = {"bbcc22", "%62bcc22", "bbcc", "last", "name"};
    static const char *const missing[] = {"zz",  "b%62b", "..",    "%2e%2e", "%",   "_",
                                          "bbc", "%2A",   "bb%20", "bb%2F",  "%ff", "a%c3"};
    test_web *web = *state;
    char path[128];

    add_running(web, "bbcc22", "name");
    for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
        json_t *answer;

        snprintf(path, sizeof(path), "/api/v1/runs/%s/recipe", there[i]);
        answer = test_web_json(web, 200, path);
        assert_string_equal(text_at(answer, "run"), "bbcc22");
        json_decref(answer);
    }
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        snprintf(path, sizeof(path), "/api/v1/runs/%s/recipe", missing[i]);
        json_decref(test_web_json(web, 404, path));
    }
    add_running(web, "bbcc3", "other");
    json_decref(test_web_json(web, 404, "/api/v1/runs/bbcc"));
}

static json_t *runs_at(test_web *web, const char *query, int64_t total, const char *ids)
{
    char path[128], found[256] = "";
    json_t *answer, *run;
    size_t at;

    snprintf(path, sizeof(path), "/api/v1/runs?%s", query);
    answer = test_web_json(web, 200, path);
    assert_int_equal(int_at(answer, "total"), total);
    json_array_foreach(json_object_get(answer, "runs"), at, run) {
        size_t length = strlen(found);

        snprintf(found + length, sizeof(found) - length, "%s%s", at > 0 ? " " : "",
                 text_at(run, "id"));
    }
    assert_string_equal(found, ids);
    return answer;
}

static void test_runs_are_searched_sorted_and_paged(void **state)
{
    static const double losses[] = {3, 1, NAN, 2};
    static const char *const names[] = {"alpha", "Beta", "gamma", "alphabet"};
    test_web *web = *state;
    test_store *t = &web->rows;
    json_t *answer;

    for (int i = 0; i < 4; i++) {
        char id[8];

        snprintf(id, sizeof(id), "r%d", i);
        test_store_run(t, id, names[i]);
        assert_good(t, dt_store_run_set_progress(t->store, id, i, losses[i], NAN, NAN, 1, &t->err));
    }
    assert_good(t, dt_store_run_label(t->store, "r2", &(dt_labels){.tags = "keep"}, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r3", DT_RUN_RUNNING, -1, "", 5, &t->err));
    json_decref(runs_at(web, "", 4, "r3 r2 r1 r0"));
    json_decref(runs_at(web, "q=ALPHA", 2, "r3 r0"));
    json_decref(runs_at(web, "q=keep", 1, "r2"));
    json_decref(runs_at(web, "q=%25", 0, ""));
    json_decref(runs_at(web, "q=alpha&state=running", 1, "r3"));
    assert_good(t, dt_store_run_set_state(t->store, "r1", DT_RUN_RUNNING, -1, "", 5, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r1", DT_RUN_FINISHED, 0, "", 6, &t->err));
    json_decref(runs_at(web, "state=active&limit=2", 3, "r3 r2"));
    answer = runs_at(web, "limit=1&q=gamma", 1, "r2");
    assert_int_equal(int_at(answer, "active"), 3); /* of the whole store, whatever is requested */
    json_decref(answer);
    json_decref(runs_at(web, "sort=loss", 4, "r1 r3 r0 r2"));
    json_decref(runs_at(web, "sort=-loss", 4, "r0 r3 r1 r2"));
    json_decref(runs_at(web, "sort=created&limit=2&offset=1", 4, "r1 r2"));
    json_decref(runs_at(web, "offset=9", 4, ""));
}

static const json_t *bucket_at(const json_t *answer, const char *curve, const char *key, size_t at)
{
    const json_t *series = json_object_get(json_object_get(answer, "series"), curve);

    return json_array_get(json_object_get(series, key), at);
}

static void test_a_chart_is_asked_for_in_buckets(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    json_t *answer;

    add_running(web, "bb", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 21; step < 4096; step++)
        assert_good(t, dt_store_metric_add(t->store, "bb", 1, step, "loss",
                                           step == 3000   ? 99
                                           : step == 3001 ? NAN
                                                          : 1,
                                           step, &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
    answer = test_web_json(web, 200, "/api/v1/runs/n/metrics?buckets=4&name=loss");
    assert_int_equal(json_object_size(json_object_get(answer, "series")), 1);
    assert_int_equal(json_integer_value(bucket_at(answer, "loss", "last_step", 3)), 4095);
    assert_int_equal(json_integer_value(bucket_at(answer, "loss", "points", 2)), 1024);
    assert_int_equal(json_integer_value(bucket_at(answer, "loss", "not_finite", 2)), 1);
    assert_true(json_real_value(bucket_at(answer, "loss", "max", 2)) == 99);
    assert_true(json_number_value(bucket_at(answer, "loss", "min", 2)) == 1);
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs/bb/metrics?buckets=9&from=2999&to=3001");
    assert_int_equal(json_integer_value(bucket_at(answer, "loss", "first_step", 0)), 2999);
    assert_int_equal(json_integer_value(bucket_at(answer, "loss", "last_step", 2)), 3001);
    assert_null(bucket_at(answer, "loss", "last_step", 3));
    assert_true(json_is_null(bucket_at(answer, "loss", "mean", 2)));
    /* It has no points. */
    assert_null(json_object_get(json_object_get(answer, "series"), "valid_loss"));
    json_decref(answer);
}

static void test_points_come_as_csv_and_whole(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    test_answer answer;
    int lines = 0;

    add_running(web, "bb", "n");
    assert_good(t, dt_store_run_label(t->store, "bb", &(dt_labels){.name = "=a,b"}, &t->err));
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 0; step < 1536; step++) /* fills whole blocks */
        assert_good(t, dt_store_metric_add(t->store, "bb", 1, 100 + step, "gradient_norm",
                                           step == 7 ? NAN : 0.1, 0, &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
    test_answer_init(&answer);
    test_web_get(web, &answer, "/api/v1/csv?runs=bb&name=gradient_norm&from=101");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head.data, "Content-Type: text/csv"));
    for (const char *at = answer.body.data; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, 1536);
    assert_non_null(strstr(answer.body.data, "value,time\nbb,\"'=a,b\",1,101,gradient_norm,0.1"));
    assert_non_null(strstr(answer.body.data, ",107,gradient_norm,nan,"));
    test_web_get(web, &answer, "/api/v1/csv?runs=bb,nosuch");
    assert_int_equal(answer.status, 404);
    assert_null(strstr(answer.head.data, "Content-Disposition"));
    test_web_get(web, &answer, "/api/v1/csv");
    assert_int_equal(answer.status, 400);
    test_answer_release(&answer);
}

int main(void)
{
#define WITH_WEB(f) cmocka_unit_test_setup_teardown(f, test_web_setup, test_web_teardown)
    const struct CMUnitTest tests[] = {
        WITH_WEB(test_the_list_is_newest_first_with_null_for_unknown_values),
        WITH_WEB(test_a_long_list_and_many_events_come_in_parts_and_whole),
        WITH_WEB(test_a_run_is_shown_with_attempts_nodes_and_metric_names),
        WITH_WEB(test_metrics_are_columns_with_a_cursor_and_a_bound),
        WITH_WEB(test_a_long_curve_comes_in_parts_and_whole),
        WITH_WEB(test_the_tail_of_a_log_is_served_and_any_bytes_become_text),
        WITH_WEB(test_checkpoints_show_whether_they_still_exist),
        WITH_WEB(test_events_leave_out_what_has_its_own_view_but_count_it),
        WITH_WEB(test_the_recipe_is_served_as_written_and_resolved),
        WITH_WEB(test_bad_arguments_are_named),
        WITH_WEB(test_a_run_is_found_by_what_the_command_line_takes),
        WITH_WEB(test_runs_are_searched_sorted_and_paged),
        WITH_WEB(test_a_chart_is_asked_for_in_buckets),
        WITH_WEB(test_points_come_as_csv_and_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
