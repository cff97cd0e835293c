/* Following a run: nothing is lost or sent twice, however often the connection breaks; a cursor
 * is accepted or refused, without other effects. */
#include <arpa/inet.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "web/web_int.h"
#include "web_support.h"

/* --- a client that follows */

typedef struct follower {
    int fd;
    dt_strbuf seen; /* received, but not used yet */
    char cursor[512];
} follower;

static void ask(follower *f, const test_web *web, const char *query)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)web->port)};
    struct timeval patience = {.tv_sec = 60};
    char request[1024];
    int length = snprintf(request, sizeof(request),
                          "GET %s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                          "%s%s%s\r\n",
                          query[0] == '/' ? "" : "/api/v1/runs/aa/live", query, web->port,
                          f->cursor[0] != '\0' ? "Last-Event-ID: " : "", f->cursor,
                          f->cursor[0] != '\0' ? "\r\n" : "");

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(f->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(f->fd, request, (size_t)length, MSG_NOSIGNAL), length);
    dt_strbuf_init(&f->seen);
}

static void leave(follower *f)
{
    close(f->fd);
    dt_strbuf_release(&f->seen);
}

/* query: of a run, or a whole path. Clients that left keep their places until the server
 * notices, on a busy machine later than the next one arrives: that one gets 503, and tries
 * again. */
static void follow(follower *f, const test_web *web, const char *query)
{
    static const char full[] = "HTTP/1.1 503";
    double deadline = dt_clock_monotonic_seconds() + 60;
    char first[4096];
    ssize_t got;

    for (;;) {
        ask(f, web, query);
        got = recv(f->fd, first, sizeof(first), 0);
        assert_true(got >= (ssize_t)strlen(full));
        dt_strbuf_add(&f->seen, first, (size_t)got);
        if (strncmp(f->seen.data, full, strlen(full)) != 0)
            return;
        leave(f);
        assert_true(dt_clock_monotonic_seconds() < deadline);
        dt_clock_sleep_seconds(0.05);
    }
}

/* Returns the next event of a kind, and stores its cursor in the follower. New reference. */
static json_t *next_event(follower *f, const char *kind)
{
    char wanted[64], chunk[4096];
    dt_error err = DT_ERROR_INIT;
    json_t *data;

    snprintf(wanted, sizeof(wanted), "event: %s\nid: ", kind);
    for (;;) {
        char *at = strstr(f->seen.data, wanted), *id, *json, *end;
        ssize_t got;

        if (at != NULL && (end = strstr(at, "\n\n")) != NULL) {
            id = at + strlen(wanted);
            json = strstr(id, "\ndata: ");
            snprintf(f->cursor, sizeof(f->cursor), "%.*s", (int)(json - id), id);
            json += strlen("\ndata: ");
            assert_int_equal(dt_json_parse(&data, json, (size_t)(end - json), "event", &err),
                             DT_OK);
            dt_strbuf_remove_front(&f->seen, (size_t)(end - f->seen.data));
            return data;
        }
        got = recv(f->fd, chunk, sizeof(chunk), 0);
        if (got <= 0)
            fail_msg("no '%s' came; seen: %s", kind, f->seen.data);
        dt_strbuf_add(&f->seen, chunk, (size_t)got);
    }
}

/* --- a run that continues */

static void begin_run(test_store *t)
{
    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_RUNNING, -1, "", 1000, &t->err));
}

static void add_step(test_store *t, int64_t attempt, int64_t step)
{
    dt_store_event event = {.attempt = attempt,
                            .sequence = attempt * 1000 + step,
                            .rank = 0,
                            .time_ms = step,
                            .kind = "checkpoint",
                            .json = "{}"};

    assert_good(t, dt_store_begin(t->store, &t->err));
    assert_good(
        t, dt_store_metric_add(t->store, "aa", attempt, step, "loss", (double)step, 1, &t->err));
    if (step % 3 == 0) {
        assert_good(t, dt_store_metric_add(t->store, "aa", attempt, step - step % 2, "valid_loss",
                                           (double)attempt, 1, &t->err));
        assert_good(t, dt_store_event_add(t->store, "aa", &event, &t->err));
    }
    assert_good(
        t, dt_store_run_set_progress(t->store, "aa", step, (double)step, NAN, NAN, 1, &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
}

typedef struct heard {
    int64_t attempt;
    int points[3][200], valid[3][200]; /* how often each was sent, by attempt and step */
    int events;
} heard;

static void take_curve(int (*into)[200], int64_t attempt, const json_t *series, const char *name)
{
    const json_t *steps = json_object_get(json_object_get(series, name), "step"), *step;
    size_t at;

    json_array_foreach(steps, at, step) {
        into[attempt][json_integer_value(step)]++;
    }
}

static void take(heard *told, json_t *news)
{
    const json_t *series = json_object_get(news, "series");

    if (json_object_get(news, "attempt") != NULL)
        told->attempt = json_integer_value(json_object_get(news, "attempt"));
    take_curve(told->points, told->attempt, series, "loss");
    take_curve(told->valid, told->attempt, series, "valid_loss");
    told->events += (int)json_array_size(json_object_get(news, "events"));
    json_decref(news);
}

static int sum(int (*of)[200], int64_t attempt)
{
    int all = 0;

    for (int i = 0; i < 200; i++) {
        assert_true(of[attempt][i] <= 1);
        all += of[attempt][i];
    }
    return all;
}

static void test_who_follows_hears_of_each_point_once_however_often_he_is_cut_off(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    heard told = {.attempt = 1};
    follower f = {.cursor = ""};
    int64_t attempt;

    begin_run(t);
    add_step(t, 1, 0);
    follow(&f, web, "");
    json_decref(next_event(&f, "open"));
    for (int64_t step = 1; step <= 20; step++) {
        add_step(t, 1, step);
        if (step % 2 == 0)
            take(&told, next_event(&f, "news"));
        if (step % 5 == 0) { /* disconnects, and a step passes */
            leave(&f);
            add_step(t, 1, ++step);
            follow(&f, web, "");
        }
    }
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_FAILED, 1, "x", 2000, &t->err));
    assert_good(t,
                dt_store_attempt_add(t->store, "aa", 10, 100, "{}", "h", 3000, &attempt, &t->err));
    for (int64_t step = 10; step <= 12; step++)
        add_step(t, 2, step);
    while (told.points[2][12] == 0) {
        take(&told, next_event(&f, "news"));
        leave(&f);
        follow(&f, web, "");
    }
    leave(&f);
    assert_int_equal(sum(told.points, 1), 21); /* steps 1 to 21 */
    assert_int_equal(sum(told.valid, 1), 7);
    assert_int_equal(sum(told.points, 2), 3);
    assert_int_equal(told.events, 8);
}

static void test_a_run_is_sent_from_its_beginning_on_request(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    heard told = {.attempt = 1};
    follower f = {.cursor = ""}, g = {.cursor = ""};
    char *dot;

    begin_run(t);
    for (int64_t step = 0; step < 100; step++)
        add_step(t, 1, step);
    follow(&f, web, "");
    json_decref(next_event(&f, "open"));
    leave(&f);
    dot = strchr(f.cursor, '.');
    snprintf(g.cursor, sizeof(g.cursor), "%.*s.1.0.0", (int)(dot - f.cursor), f.cursor);
    follow(&g, web, "");
    while (told.points[1][99] == 0)
        take(&told, next_event(&g, "news"));
    leave(&g);
    assert_int_equal(sum(told.points, 1), 100);
    assert_string_equal(g.cursor, f.cursor);
}

static void test_the_log_of_a_rank_comes_line_by_line(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    follower f = {.cursor = ""};
    char path[256];
    json_t *news, *log;
    dt_rank rank = {.device = "cpu", .state = "ready", .exit_code = -1, .exit_signal = -1};
    const char *text = "1 first\n2 second\n3 thi";

    begin_run(t);
    snprintf(path, sizeof(path), "%s/runs/aa/logs", t->folder);
    assert_good(t, dt_file_make_dirs(path, 0700, &t->err));
    snprintf(path, sizeof(path), "%s/runs/aa/logs/rank-0.log", t->folder);
    assert_good(t, dt_file_write_atomic(path, text, strlen(text), 0600, &t->err));
    rank.log_bytes = 8;
    assert_good(t, dt_store_node_set(t->store, "aa", 1, &(dt_node){.name = "n", .state = "running"},
                                     &t->err));
    assert_good(t, dt_store_rank_set(t->store, "aa", 1, &rank, &t->err));
    follow(&f, web, "?rank=0");
    json_decref(next_event(&f, "open"));
    rank.log_bytes = 17;
    assert_good(t, dt_store_rank_set(t->store, "aa", 1, &rank, &t->err));
    for (log = NULL, news = NULL; log == NULL; log = json_object_get(news, "log")) {
        json_decref(news);
        news = next_event(&f, "news");
    }
    assert_int_equal(json_integer_value(json_object_get(log, "from_bytes")), 8);
    assert_int_equal(json_integer_value(json_object_get(log, "end_bytes")), 17);
    assert_int_equal(json_array_size(json_object_get(log, "lines")), 1);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(log, "lines"), 0), "text")),
                        "second");
    json_decref(news);
    leave(&f);
}

static void test_a_cursor_of_another_store_is_replaced(void **state)
{
    test_web *web = *state;
    follower f = {.cursor = "1.1.0.0"};

    begin_run(&web->rows);
    follow(&f, web, "");
    json_decref(next_event(&f, "open"));
    assert_string_not_equal(f.cursor, "1.1.0.0");
    leave(&f);
    follow(&f, web, ""); /* accepted */
    add_step(&web->rows, 1, 0);
    json_decref(next_event(&f, "news"));
    leave(&f);
}

/* --- several runs, and lists */

static void set_step(test_store *t, const char *run, int64_t step)
{
    assert_good(t,
                dt_store_run_set_progress(t->store, run, step, (double)step, NAN, NAN, 1, &t->err));
}

/* Returns the step of a run in a list's news; -1: the run is not among the changes. */
static int64_t step_told(const json_t *news, const char *run)
{
    const json_t *one;
    size_t at;

    json_array_foreach(json_object_get(news, "runs"), at, one) {
        if (strcmp(json_string_value(json_object_get(one, "id")), run) == 0)
            return json_integer_value(json_object_get(one, "step"));
    }
    return -1;
}

static void test_a_list_sends_only_changed_runs(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    follower f = {.cursor = ""};
    json_t *news;

    begin_run(t);
    test_store_run(t, "bb", "other");
    follow(&f, web, "/api/v1/live?sort=name");
    json_decref(next_event(&f, "open"));
    set_step(t, "aa", 7);
    news = next_event(&f, "news");
    assert_int_equal(step_told(news, "aa"), 7);
    assert_int_equal(step_told(news, "bb"), -1);
    assert_int_equal(json_array_size(json_object_get(news, "order")), 2);
    json_decref(news);
    leave(&f);
    set_step(t, "bb", 3); /* without a client */
    test_store_run(t, "cc", "third");
    follow(&f, web, "/api/v1/live?sort=name");
    for (news = next_event(&f, "news"); json_integer_value(json_object_get(news, "total")) < 3;
         news = next_event(&f, "news"))
        json_decref(news);
    assert_int_equal(step_told(news, "aa"), -1);
    assert_int_equal(step_told(news, "bb"), 3);
    assert_int_equal(step_told(news, "cc"), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(news, "order"), 2)), "cc");
    json_decref(news);
    leave(&f);
    /* Another list: what the client has of `cc` is still valid. */
    follow(&f, web, "/api/v1/live?q=third");
    set_step(t, "aa", 8);
    set_step(t, "cc", 5);
    do {
        news = next_event(&f, "news");
        assert_int_equal(json_integer_value(json_object_get(news, "total")), 1);
        assert_int_equal(step_told(news, "aa"), -1);
    } while (step_told(news, "cc") != 5 && (json_decref(news), true));
    json_decref(news);
    leave(&f);
}

static void test_several_runs_are_sent_in_one_stream(void **state)
{
    test_web *web = *state;
    test_store *t = &web->rows;
    heard told = {.attempt = 1};
    follower f = {.cursor = ""};
    int64_t other = 0;
    json_t *news;

    begin_run(t);
    add_step(t, 1, 0);
    test_store_run(t, "bb", "other");
    follow(&f, web, "/api/v1/live?runs=aa,bb");
    json_decref(next_event(&f, "open"));
    assert_non_null(strchr(f.cursor, ','));
    for (int64_t step = 1; step <= 9; step++) {
        add_step(t, 1, step);
        set_step(t, "bb", step);
        if (step % 3 == 0) { /* the cursor is of both */
            leave(&f);
            follow(&f, web, "/api/v1/live?runs=aa,bb");
        }
    }
    while (sum(told.points, 1) < 9 || other < 9) {
        const json_t *run;

        news = next_event(&f, "news");
        if (strcmp(json_string_value(json_object_get(news, "run")), "aa") == 0) {
            take(&told, news);
            continue;
        }
        run = json_object_get(json_object_get(news, "view"), "run");
        assert_string_equal(json_string_value(json_object_get(run, "id")), "bb");
        other = json_integer_value(json_object_get(run, "step"));
        json_decref(news);
    }
    assert_int_equal(sum(told.points, 1), 9);
    leave(&f);
    snprintf(f.cursor, sizeof(f.cursor), "1.1.0.0"); /* one cursor for two runs */
    follow(&f, web, "/api/v1/live?runs=aa,bb");
    json_decref(next_event(&f, "open"));
    leave(&f);
    f.cursor[0] = '\0'; /* no event of another client */
    follow(&f, web, "/api/v1/live?runs=aa,bb&after=1.1.0.0,x%0Aevent:%20news%0Adata:%20{}");
    json_decref(next_event(&f, "open"));
    assert_null(strchr(f.cursor, 'x'));
    leave(&f);
}

static void test_what_cannot_be_followed_is_refused(void **state)
{
    static const struct {
        const char *path;
        int status;
    } wrong[] = {
        {"/api/v1/live?runs=", 400},     {"/api/v1/live?runs=aa,nosuch", 404},
        {"/api/v1/live?limit=201", 400}, {"/api/v1/live?state=odd", 400},
        {"/api/v1/live?sort=odd", 400},  {"/api/v1/live?runs=r1,r2,r3,r4,r5,r6,r7,r8,r9,r10,r11,r12,r13,r14,r15,r16,r17,r18,r19,r20,r21",
         400},
    };
    test_web *web = *state;
    test_answer answer;
    char id[8];

    begin_run(&web->rows);
    for (int i = 1; i <= 21; i++) {
        snprintf(id, sizeof(id), "r%d", i);
        test_store_run(&web->rows, id, "n");
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        test_answer_init(&answer);
        test_web_get(web, &answer, wrong[i].path);
        if (answer.status != wrong[i].status)
            fail_msg("%s: %d", wrong[i].path, (int)answer.status);
        test_answer_release(&answer);
    }
}

static void test_there_is_a_limit_to_those_who_follow_and_not_to_others(void **state)
{
    static follower many[64];
    test_web *web = *state;
    test_answer answer;

    begin_run(&web->rows);
    for (int i = 0; i < 64; i++) {
        follow(&many[i], web, "");
        json_decref(next_event(&many[i], "open"));
    }
    test_answer_init(&answer);
    test_web_get(web, &answer, "/api/v1/runs/aa/live");
    assert_int_equal(answer.status, 503);
    json_decref(test_web_json(web, 200, "/api/v1/runs/aa"));
    test_answer_release(&answer);
    for (int i = 0; i < 64; i++)
        leave(&many[i]);
}

static void test_only_who_may_read_may_follow(void **state)
{
    test_web *web = *state;
    test_answer answer;

    begin_run(&web->rows);
    test_answer_init(&answer);
    web->token = NULL;
    test_web_get(web, &answer, "/api/v1/runs/aa/live");
    assert_int_equal(answer.status, 401);
    test_answer_release(&answer);
}

/* --- cursors */

static void test_a_cursor_comes_back_as_it_was(void **state)
{
    dt_since_mark marks[] = {{3, 740}, {4, 740}, {5, 740}, {7, 700}, {8, -1}, {900, 740}};
    const dt_web_cursor cursor = {.store = 0xabc,
                                  .since = {.attempt = 2, .event = 9, .marks = marks, .count = 6},
                                  .log_bytes = 5};
    dt_web_cursor read;
    dt_arena arena;
    dt_strbuf text;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_web_cursor_add(&text, &cursor);
    assert_string_equal(text.data, "abc.2.9.5.-1:8.700:7.740:3-5+900");
    assert_true(dt_web_cursor_read(&read, text.data, &arena));
    assert_true(read.store == 0xabc && read.since.attempt == 2 && read.since.event == 9 &&
                read.log_bytes == 5 && read.since.count == 6);
    assert_memory_equal(read.since.marks, marks, sizeof(marks));
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void test_invalid_cursors_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "1",
                                        "1.1.1",
                                        "1.0.1.1",
                                        "1.1.-1.1",
                                        "1.1.1.-1",
                                        "1.1.1.1.",
                                        "1.1.1.1.5",
                                        "1.1.1.1.5:",
                                        "1.1.1.1.5:-1",
                                        "1.1.1.1.5:3-2",
                                        "1.1.1.1.5:3+",
                                        "1.1.1.1 ",
                                        "1.1.1.1.5:1-99999999999",
                                        "1.1.1.1.5:9223372036854775807",
                                        "1.99999999999999999999.1.1",
                                        "1.1.1.1.5:1-5000"};
    dt_web_cursor read;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (dt_web_cursor_read(&read, wrong[i], &arena))
            fail_msg("'%s' was taken", wrong[i]);
    dt_arena_release(&arena);
}

int main(void)
{
#define WITH_WEB(f) cmocka_unit_test_setup_teardown(f, test_web_setup, test_web_teardown)
    const struct CMUnitTest tests[] = {
        WITH_WEB(test_who_follows_hears_of_each_point_once_however_often_he_is_cut_off),
        WITH_WEB(test_a_run_is_sent_from_its_beginning_on_request),
        WITH_WEB(test_the_log_of_a_rank_comes_line_by_line),
        WITH_WEB(test_a_cursor_of_another_store_is_replaced),
        WITH_WEB(test_there_is_a_limit_to_those_who_follow_and_not_to_others),
        WITH_WEB(test_a_list_sends_only_changed_runs),
        WITH_WEB(test_several_runs_are_sent_in_one_stream),
        WITH_WEB(test_what_cannot_be_followed_is_refused),
        cmocka_unit_test_setup_teardown(test_only_who_may_read_may_follow, test_web_setup_locked,
                                        test_web_teardown),
        cmocka_unit_test(test_a_cursor_comes_back_as_it_was),
        cmocka_unit_test(test_invalid_cursors_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
