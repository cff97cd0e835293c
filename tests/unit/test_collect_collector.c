/* collector: turns journals into rows, each event once and in order, whatever its agent sends; reports gaps; and
 * acknowledges only events that are on the disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/collect/collector.h"
#include "store_support.h"

typedef struct fixture {
    test_store *t;
    dt_store *store;
    uv_loop_t loop;
    dt_poll_clock clock;
    dt_collector *collector;
    int events, released;
    int64_t acknowledged;
} fixture;

/* --- the run */

static bool is_over(void *context)
{
    return false;
}

static void on_event(void *context, int64_t node, const dt_message *message)
{
    ((fixture *)context)->events++;
}

static bool on_checkpoint(void *context, const dt_message *message)
{
    return false;
}

static void on_acknowledge(void *context, int64_t node, int64_t sequence)
{
    fixture *f = context;

    assert_true(sequence >= f->acknowledged);
    f->acknowledged = sequence;
}

static void on_released(void *context, int64_t node)
{
    ((fixture *)context)->released++;
}

static void on_stored(void *context) {}

static void on_pause(void *context, bool pause) {}

static void on_failed(void *context, dt_status st, const dt_error *err)
{
    fail_msg("%s", err->message);
}

static const dt_collector_calls calls = {.is_over = is_over,
                                         .event = on_event,
                                         .checkpoint = on_checkpoint,
                                         .acknowledge = on_acknowledge,
                                         .released = on_released,
                                         .stored = on_stored,
                                         .pause = on_pause,
                                         .failed = on_failed};

static void open_collector(fixture *f, test_store *t)
{
    dt_collector_setup setup = {.rows = {.run = "r", .folder = t->folder, .attempt = 1},
                                .clock = &f->clock,
                                .checkpoints = t->folder,
                                .world_size = 1,
                                .node_count = 1};

    *f = (fixture){.t = t};
    setenv("XDG_STATE_HOME", t->folder, 1);
    assert_good(t, dt_store_open(&f->store, NULL, &t->err));
    setup.rows.store = f->store;
    assert_good(t, dt_store_run_add(f->store,
                                    &(dt_run){.id = "r",
                                              .name = "r",
                                              .recipe_json = "{}",
                                              .recipe_text = "",
                                              .recipe_hash = "h",
                                              .boot_id = "",
                                              .steps_total = 100,
                                              .created_ms = 1},
                                    &t->err));
    uv_loop_init(&f->loop);
    dt_poll_clock_open(&f->clock, &f->loop);
    assert_good(t, dt_collector_open(&f->collector, &setup, &calls, f, &t->err));
    dt_collector_set_node(f->collector, 0,
                          &(dt_node){.name = "a", .state = "running", .boot_id = ""});
    dt_collector_set_rank(f->collector, &(dt_rank){.device = "cpu", .state = "waiting"});
    assert_good(t, dt_collector_add_rows(f->collector, &t->err));
}

static void close_collector(fixture *f)
{
    dt_collector_end(f->collector);
    dt_poll_clock_close(&f->clock);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&f->loop), 0);
    dt_collector_close(f->collector);
    dt_store_close(f->store);
}

/* --- the journal */

/* A point of the curve at step `sequence`. after: the number before a jump; -1: no jump. */
static void take_after(fixture *f, int64_t sequence, int64_t after)
{
    dt_message message;
    char line[256], jump[40] = "";

    if (after >= 0)
        snprintf(jump, sizeof(jump), ",\"after\":%lld", (long long)after);
    snprintf(line, sizeof(line),
             "{\"event\":\"metrics\",\"rank\":0,\"sequence\":%lld,\"time_ms\":1,\"step\":%lld,"
             "\"values\":{\"loss\":1.5}%s}",
             (long long)sequence, (long long)sequence, jump);
    assert_good(f->t, dt_message_parse(&message, line, strlen(line), 1, &f->t->err));
    assert_good(f->t, dt_collector_take(f->collector, 0, &message, &f->t->err));
    dt_message_release(&message);
}

static void take(fixture *f, int64_t sequence)
{
    take_after(f, sequence, -1);
}

static int64_t count(fixture *f, const char *kind)
{
    dt_store_event *events;
    int64_t events_count, found = 0;

    assert_good(f->t, dt_store_event_list(f->store, &events, &events_count, "r", 0, 0, &f->t->arena,
                                          &f->t->err));
    for (int64_t i = 0; i < events_count; i++)
        found += strcmp(events[i].kind, kind) == 0 ? 1 : 0;
    return found;
}

static int64_t count_points(fixture *f)
{
    dt_metric *points;
    int64_t found;

    assert_good(f->t, dt_store_metric_list(f->store, &points, &found, "r", "loss", -1, 0,
                                           &f->t->arena, &f->t->err));
    return found;
}

static int64_t wanted(const fixture *f)
{
    return dt_collector_node(f->collector, 0)->row.acknowledged;
}

static void test_each_event_is_taken_once(void **state)
{
    fixture f;

    open_collector(&f, *state);
    take(&f, 0);
    take(&f, 1);
    take(&f, 1);
    take(&f, 0);
    take(&f, 2);
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_int_equal(f.events, 3);
    assert_int_equal(count_points(&f), 3);
    assert_int_equal(wanted(&f), 3);
    assert_int_equal(dt_collector_progress(f.collector)->step, 2);
    assert_false(dt_collector_has_gaps(f.collector));
    close_collector(&f);
}

/* What a node is used for becomes points by time, and is no progress of the run. */
static void test_usage_becomes_points_by_time(void **state)
{
    static const char *const lines[] = {"{\"event\":\"system\",\"sequence\":0,\"time_ms\":"
                                        "1700000010250,\"values\":{\"cpu_percent\":40,"
                                        "\"loss\":7,\"an_unknown_one\":1,\"gpu_busy_percent\":3}}",
                                        "{\"event\":\"system\",\"sequence\":1,\"time_ms\":"
                                        "1700000020250,\"values\":{\"cpu_percent\":60},"
                                        "\"gpus\":[{\"index\":3,\"gpu_busy_percent\":90},{"
                                        "\"index\":-1,\"gpu_busy_percent\":9},5]}"};
    dt_store_curves all;
    dt_message message;
    dt_metric *points;
    int64_t found;
    fixture f;

    open_collector(&f, *state);
    for (size_t i = 0; i < 4; i++) { /* each arrives twice */
        assert_good(f.t,
                    dt_message_parse(&message, lines[i % 2], strlen(lines[i % 2]), 1, &f.t->err));
        assert_int_equal(message.kind, DT_MESSAGE_SYSTEM);
        assert_good(f.t, dt_collector_take(f.collector, 0, &message, &f.t->err));
        dt_message_release(&message);
    }
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_good(f.t, dt_store_metric_list(f.store, &points, &found, "r", "system/", -1, 0,
                                          &f.t->arena, &f.t->err));
    assert_int_equal(found, 3);
    assert_string_equal(points[0].name, "system/cpu_percent_node_0");
    assert_int_equal(points[0].step, 1700000010);
    assert_float_equal(points[1].value, 60, 0);
    assert_string_equal(points[2].name, "system/gpu_busy_percent_node_0_gpu_3");
    assert_good(f.t, dt_store_curves_find(f.store, &all, "r", NULL, &f.t->arena, &f.t->err));
    assert_int_equal(all.count, 0); /* a list of all metrics lacks them */
    assert_int_equal(count(&f, "system"), 0);
    assert_int_equal(dt_collector_progress(f.collector)->step, 0);
    assert_int_equal(dt_collector_node(f.collector, 0)->step, 0);
    assert_float_equal(dt_collector_node(f.collector, 0)->step_seconds, 0, 0);
    close_collector(&f);
}

static void test_missing_events_are_reported(void **state)
{
    fixture f;

    open_collector(&f, *state);
    take(&f, 0);
    take(&f, 5); /* 1 to 4 are not available */
    assert_true(dt_collector_has_gaps(f.collector));
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_int_equal(count(&f, "gap"), 1);
    assert_int_equal(wanted(&f), 6);
    close_collector(&f);
}

/* A restarted agent continues with a higher number, and reports the number before the jump. */
static void test_a_jump_of_the_agent_loses_nothing(void **state)
{
    fixture f;

    open_collector(&f, *state);
    take(&f, 0);
    take_after(&f, 1000, 0);
    assert_false(dt_collector_has_gaps(f.collector));
    assert_int_equal(wanted(&f), 1001);
    take_after(&f, 3000, 1005); /* the number before the jump is higher than the last one seen */
    assert_true(dt_collector_has_gaps(f.collector));
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_int_equal(count(&f, "gap"), 1);
    close_collector(&f);
}

static void test_a_damaged_line_is_left_out(void **state)
{
    static const char odd[] = "{\"event\":\"of a newer build\",\"sequence\":1,\"time_ms\":1}";
    bool known;
    fixture f;

    open_collector(&f, *state);
    take(&f, 0);
    assert_good(f.t, dt_collector_skip(&known, f.collector, 0, odd, strlen(odd), "unknown event",
                                       &f.t->err));
    assert_true(known);
    assert_int_equal(wanted(&f), 2);
    assert_good(f.t, dt_collector_skip(&known, f.collector, 0, odd, strlen(odd), "unknown event",
                                       &f.t->err));
    assert_int_equal(wanted(&f), 2); /* it was seen before */
    assert_good(f.t, dt_collector_skip(&known, f.collector, 0, "noise", 5, "no JSON", &f.t->err));
    assert_false(known);
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_int_equal(count(&f, "gap"), 1);
    close_collector(&f);
}

static void test_only_events_on_the_disk_are_acknowledged(void **state)
{
    fixture f;

    open_collector(&f, *state);
    assert_good(f.t, dt_collector_begin(f.collector, &f.loop, &f.t->err));
    take(&f, 0);
    take(&f, 1);
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_false(dt_collector_is_idle(f.collector));
    assert_int_equal(f.acknowledged, 0);
    dt_collector_show_node(f.collector, 0, "released");
    dt_collector_release_node(f.collector, 0);
    assert_good(f.t, dt_collector_commit(f.collector, &f.t->err));
    assert_int_equal(f.released, 0);
    while (f.released == 0)
        uv_run(&f.loop, UV_RUN_ONCE);
    assert_int_equal(f.acknowledged, 2);
    assert_true(dt_collector_is_idle(f.collector));
    assert_int_equal(count_points(&f), 2);
    close_collector(&f);
}

#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_event_is_taken_once),    TEST(test_usage_becomes_points_by_time),
        TEST(test_missing_events_are_reported), TEST(test_a_jump_of_the_agent_loses_nothing),
        TEST(test_a_damaged_line_is_left_out),  TEST(test_only_events_on_the_disk_are_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
