/* node_lines: a run's nodes in words, and when a slow rank is named; timing: when the remaining time is known. */
#include <math.h>
#include <string.h>

#include "store_support.h"

#include "base/metric_kinds.h"
#include "runner/supervisor/supervisor.h"
#include "runner/view/runs/runs.h"
#include "store/curve.h"

static const dt_term narrow = {.fd = -1, .seen = true, .columns = 44};

static void add_node(test_store *t, int64_t number, const char *name, const char *state,
                     const char *rank_state)
{
    const dt_node node = {.node = number, .name = name, .state = state};
    const dt_rank rank = {.rank = number,
                          .node = number,
                          .device = "cpu",
                          .state = rank_state,
                          .pid = 7,
                          .exit_code = -1,
                          .exit_signal = -1};

    assert_good(t, dt_store_node_set(t->store, "r", 1, &node, &t->err));
    assert_good(t, dt_store_rank_set(t->store, "r", 1, &rank, &t->err));
}

static void add_point(test_store *t, int64_t step, const char *name, double value)
{
    assert_good(t, dt_store_metric_add(t->store, "r", 1, step, name, value, step * 1000, &t->err));
}

/* Makes a run with 10 steps of a second each. */
static int setup(void **state)
{
    test_store *t;

    if (test_store_setup(state) != 0)
        return -1;
    t = *state;
    test_store_run(t, "r", "r");
    add_node(t, 0, "a", "running", "ready");
    add_node(t, 1, "b", "running", "ready");
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_RUNNING, -1, "", 500, &t->err));
    for (int64_t step = 1; step <= 10; step++)
        add_point(t, step, "loss", 1.0);
    add_point(t, 10, "step_seconds", 1.0);
    assert_good(t, dt_store_run_set_progress(t->store, "r", 10, 1.0, 1.0, 64.0, 10000, &t->err));
    return 0;
}

static dt_timing timing_at(test_store *t, int64_t now_ms)
{
    dt_timing timing;
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, "r", &t->arena, &t->err));
    assert_good(t, dt_timing_read(&timing, t->store, &run, now_ms, &t->arena, &t->err));
    return timing;
}

static dt_node_lines read_lines(test_store *t, int64_t now_ms)
{
    dt_timing timing = timing_at(t, now_ms);
    dt_node_lines lines;
    dt_run run;

    assert_good(t, dt_store_run_find(t->store, &run, "r", &t->arena, &t->err));
    assert_good(t,
                dt_node_lines_read(&lines, t->store, &run, &timing.activity, &t->arena, &t->err));
    return lines;
}

static void expect_lines(test_store *t, int64_t now_ms, const char *expected)
{
    dt_node_lines lines = read_lines(t, now_ms);
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_node_lines_add(&out, &narrow, &lines, 0);
    assert_string_equal(out.data, expected);
    dt_strbuf_release(&out);
}

static void test_the_activity_of_ranks_is_shown(void **state)
{
    test_store *t = *state;

    expect_lines(t, 10500,
                 "  a  running        1 rank training\n"
                 "  b  running        1 rank training\n");
    add_node(t, 1, "b", "running", "failed");
    expect_lines(t, 10500,
                 "  a  running        1 rank training\n"
                 "  b  running        1 rank failed\n");
}

static void test_an_unreachable_node_is_shown_with_the_whole_reason(void **state)
{
    test_store *t = *state;

    add_node(t, 1, "b", "not reachable (ssh: connect to host b port 22: No route to host)",
             "ready");
    expect_lines(t, 20000,
                 "  a  running        1 rank waiting\n"
                 "  b  not reachable  1 rank not responding\n"
                 "     ssh: connect to host b port 22: No\n"
                 "     route to host\n");
    add_node(t, 1, "b", "copying the engine, 12 of 60 MB", "waiting");
    expect_lines(t, 20000,
                 "  a  running        1 rank training\n"
                 "  b  preparing      1 rank waiting\n"
                 "     copying the engine, 12 of 60 MB\n");
}

static void test_the_slowest_rank_costs_more_than_a_twentieth_of_a_step(void **state)
{
    test_store *t = *state;

    add_point(t, 10, dt_metric_name(DT_METRIC_SLOWEST_RANK), 1);
    add_point(t, 10, dt_metric_name(DT_METRIC_SLOWEST_SECONDS), 0.049);
    assert_int_equal(read_lines(t, 10500).slowest_rank, -1);
    add_point(t, 11, dt_metric_name(DT_METRIC_SLOWEST_RANK), 1);
    add_point(t, 11, dt_metric_name(DT_METRIC_SLOWEST_SECONDS), 0.051);
    assert_int_equal(read_lines(t, 10500).slowest_rank, 1);
}

static void test_time_left_is_kept_while_the_next_step_is_late(void **state)
{
    test_store *t = *state;

    assert_float_equal(timing_at(t, 10000).eta_seconds, 90, 1e-6);
    assert_float_equal(timing_at(t, 10500).eta_seconds, 89.5, 1e-6);
    assert_float_equal(timing_at(t, 11000).eta_seconds, 89, 1e-6);
    assert_float_equal(timing_at(t, 60000).eta_seconds, 89, 1e-6);
    assert_float_equal(timing_at(t, 60000).tokens_per_second, 64, 0);
}

/* Points that a resume undid are above the current step. */
static void test_time_left_does_not_count_undone_steps(void **state)
{
    test_store *t = *state;
    int64_t attempt;

    for (int64_t step = 11; step <= 80; step++)
        add_point(t, step, "loss", 1);
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_FAILED, 1, "", 90000, &t->err));
    assert_good(t,
                dt_store_attempt_add(t->store, "r", 5, 100, "{}", "h", 90000, &attempt, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_RUNNING, -1, "", 91000, &t->err));
    for (int64_t step = 6; step <= 10; step++)
        assert_good(t, dt_store_metric_add(t->store, "r", attempt, step, "loss", 1,
                                           100000 + step * 1000, &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, "r", 10, 1, 1, 64, 110000, &t->err));
    assert_float_equal(timing_at(t, 110000).eta_seconds, 90, 1e-6);
}

static void test_speed_and_time_left_are_unknown_while_a_node_is_away(void **state)
{
    test_store *t = *state;

    add_node(t, 1, "b", "not reachable", "ready");
    assert_float_equal(timing_at(t, 11000).tokens_per_second, 64, 0); /* steps still arrive */
    assert_true(isnan(timing_at(t, 20000).eta_seconds));
    assert_true(isnan(timing_at(t, 20000).tokens_per_second));
    add_node(t, 1, "b", "running", "ready");
    assert_float_equal(timing_at(t, 20000).tokens_per_second, 64, 0);
}

static void test_an_evaluation_is_one_line(void **state)
{
    test_store *t = *state;
    dt_evaluation *all;
    int64_t count, after = 4;
    dt_strbuf out;

    add_point(t, 4, dt_metric_name(DT_METRIC_VALID_LOSS), 2.5);
    add_point(t, 6, dt_metric_name(DT_METRIC_VALID_LOSS), 2.25);
    add_point(t, 6, dt_metric_name(DT_METRIC_VALID_BLEU), 21.5);
    add_point(t, 8, dt_metric_name(DT_METRIC_VALID_LOSS), 2);
    assert_good(t, dt_evaluations_read(&all, &count, &after, t->store, "r", &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_int_equal(after, 8);
    dt_strbuf_init(&out);
    dt_evaluation_add(&out, &all[0]);
    dt_strbuf_add_char(&out, '\n');
    dt_evaluation_add(&out, &all[1]);
    assert_string_equal(out.data, "validation loss 2.2500  BLEU 21.50\nvalidation loss 2.0000");
    dt_strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_activity_of_ranks_is_shown, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_an_unreachable_node_is_shown_with_the_whole_reason,
                                        setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_the_slowest_rank_costs_more_than_a_twentieth_of_a_step,
                                        setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_time_left_is_kept_while_the_next_step_is_late, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_time_left_does_not_count_undone_steps, setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_speed_and_time_left_are_unknown_while_a_node_is_away,
                                        setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_an_evaluation_is_one_line, setup, test_store_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
