#include "store_support.h"

#include <math.h>
#include <string.h>

static void add(test_store *t, int64_t attempt, int64_t step, const char *name, double value)
{
    assert_good(
        t, dt_store_metric_add(t->store, "aa", attempt, step, name, value, step * 10, &t->err));
}

static dt_metric *list(test_store *t, const char *name, int64_t after, bool newest, int64_t *count)
{
    dt_metric *points;

    assert_good(t, dt_store_metric_list(t->store, &points, count, "aa", name, after, newest,
                                        &t->arena, &t->err));
    return points;
}

static void next_attempt(test_store *t, int64_t from)
{
    int64_t attempt;

    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_STOPPED, 4, "", 1, &t->err));
    assert_good(t,
                dt_store_attempt_add(t->store, "aa", from, 100, "{}", "h", 2, &attempt, &t->err));
}

static void test_points_come_back_by_name_and_step(void **state)
{
    test_store *t = *state;
    const char **names;
    dt_metric *points;
    int64_t count;

    test_store_run(t, "aa", "n");
    points = list(t, NULL, -1, 0, &count);
    assert_int_equal(count, 0);
    add(t, 1, 2, "valid_loss", 3.5);
    add(t, 1, 2, "loss", 4.0);
    add(t, 1, 1, "loss", 5.0);
    add(t, 1, 0, "loss", 6.0);

    points = list(t, NULL, -1, 0, &count);
    assert_int_equal(count, 4);
    assert_string_equal(points[0].name, "loss");
    assert_int_equal(points[0].step, 0);
    assert_true(points[0].value == 6.0);
    assert_int_equal(points[2].step, 2);
    assert_int_equal(points[2].time_ms, 20);
    assert_string_equal(points[3].name, "valid_loss");
    list(t, "loss", 0, 0, &count);
    assert_int_equal(count, 2); /* after_step is exclusive */
    list(t, "unknown", -1, 0, &count);
    assert_int_equal(count, 0);

    assert_good(t, dt_store_metric_names(t->store, &names, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "loss");
    assert_string_equal(names[1], "valid_loss");
    assert_fails(t, dt_store_metric_names(t->store, &names, &count, "zz", &t->arena, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
    assert_fails(t, dt_store_metric_add(t->store, "zz", 1, 1, "loss", 1, 1, &t->err),
                 DT_ERR_NOT_FOUND, "'zz'");
}

static void test_a_point_that_is_sent_twice_is_stored_once_as_first_sent(void **state)
{
    test_store *t = *state;
    dt_metric *points;
    int64_t count;

    test_store_run(t, "aa", "n");
    add(t, 1, 1, "loss", 5.0);
    add(t, 1, 1, "loss", 9.0);
    points = list(t, "loss", -1, 0, &count);
    assert_int_equal(count, 1);
    assert_true(points[0].value == 5.0);
}

static void test_nan_and_infinity_survive(void **state)
{
    test_store *t = *state;
    dt_metric *points;
    int64_t count;

    test_store_run(t, "aa", "n");
    add(t, 1, 1, "loss", NAN);
    add(t, 1, 2, "loss", INFINITY);
    add(t, 1, 3, "loss", 0.1);
    test_store_reopen(t);
    points = list(t, "loss", -1, 0, &count);
    assert_int_equal(count, 3);
    assert_true(isnan(points[0].value));
    assert_true(isinf(points[1].value));
    assert_true(points[2].value == 0.1); /* exactly equal */
}

/* Attempt 1 did steps 1 to 60; attempt 2 resumed from 40 and did 40 to 80; attempt 3 resumed from 20. */
static void test_the_history_of_several_attempts_is_one_line(void **state)
{
    test_store *t = *state;
    dt_metric *points;
    int64_t count;

    test_store_run(t, "aa", "n");
    for (int64_t step = 1; step <= 60; step++)
        add(t, 1, step, "loss", 1);
    next_attempt(t, 40);
    for (int64_t step = 40; step <= 80; step++)
        add(t, 2, step, "loss", 2);

    points = list(t, "loss", -1, 0, &count);
    assert_int_equal(count, 80);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(points[i].step, i + 1);
        assert_int_equal(points[i].attempt, i + 1 < 40 ? 1 : 2); /* at 40 the newer */
    }

    next_attempt(t, 20);
    points = list(t, "loss", -1, 0, &count);
    assert_int_equal(count, 20); /* undone points are gone even before they are replaced */
    for (int64_t step = 21; step <= 30; step++)
        add(t, 3, step, "loss", 3);
    points = list(t, "loss", 15, 0, &count);
    assert_int_equal(count, 15);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(points[i].step, i + 16);
        assert_int_equal(points[i].attempt, i + 16 <= 20 ? 1 : 3);
    }
}

static void test_an_attempt_from_a_later_step_undoes_nothing(void **state)
{
    test_store *t = *state;
    int64_t count;

    test_store_run(t, "aa", "n");
    for (int64_t step = 1; step <= 10; step++)
        add(t, 1, step, "loss", 1);
    next_attempt(t, 10);
    for (int64_t step = 11; step <= 20; step++)
        add(t, 2, step, "loss", 2);
    list(t, "loss", -1, 0, &count);
    assert_int_equal(count, 20);
}

static void test_the_newest_of_each_name_is_the_last_that_counts(void **state)
{
    test_store *t = *state;
    dt_metric *points;
    int64_t count;

    test_store_run(t, "aa", "n");
    for (int64_t step = 0; step < 1000; step++)
        add(t, 1, step, "loss", (double)step);
    add(t, 1, 999, "valid_loss", 1);
    points = list(t, "loss", -1, true, &count);
    assert_int_equal(count, 1);
    assert_int_equal(points[0].step, 999);
    list(t, "loss", 999, true, &count);
    assert_int_equal(count, 0);
    list(t, NULL, -1, true, &count);
    assert_int_equal(count, 2);
    next_attempt(t, 40);
    points = list(t, "loss", -1, true, &count);
    assert_int_equal(count, 1);
    assert_int_equal(points[0].step, 40); /* the others are undone */
    list(t, "valid_loss", -1, true, &count);
    assert_int_equal(count, 0);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

/* The step of what a node is used for is the time: no attempt undoes it, whatever its first step. */
static void test_points_by_time_are_never_undone(void **state)
{
    static const char name[] = "system/cpu_percent_node_0";
    dt_metric_end last;
    dt_store_curves curves;
    test_store *t = *state;
    const char **names;
    dt_bucket *buckets;
    int64_t count;

    test_store_run(t, "aa", "n");
    for (int64_t i = 0; i < 5; i++) {
        add(t, 1, i * 10, "loss", 5);
        add(t, 1, 1700000000 + i * 10, name, (double)i);
    }
    add(t, 1, 7, "system/mine", 1); /* a user's metric */
    next_attempt(t, 20);
    for (int64_t i = 3; i < 5; i++) {
        add(t, 2, i * 10, "loss", 4);
        add(t, 2, 1700000100 + i * 10, name, (double)i * 10);
    }
    list(t, name, -1, 0, &count);
    assert_int_equal(count, 7);
    list(t, "system/", -1, 0, &count);
    assert_int_equal(count, 8);
    list(t, NULL, -1, 0, &count);
    assert_int_equal(count, 6); /* of loss and of the user's */
    list(t, "loss", -1, 1, &count);
    assert_int_equal(count, 1);
    assert_good(t, dt_store_curves_find(t->store, &curves, "aa", name, &t->arena, &t->err));
    assert_int_equal(curves.count, 1);
    assert_good(t, dt_store_curve_buckets(t->store, &buckets, &count, &curves, 0, 0, INT64_MAX, 100,
                                          &t->arena, &t->err));
    assert_int_equal(count, 7);
    assert_good(t, dt_store_curve_buckets(t->store, &buckets, &count, &curves, 0, 0, INT64_MAX, 1,
                                          &t->arena, &t->err));
    assert_int_equal(buckets[0].points, 7);
    assert_good(t, dt_store_metric_end(t->store, &last, "aa", name, DT_METRIC_HIGHEST, &t->err));
    assert_float_equal(last.value, 40, 0);
    assert_good(t, dt_store_metric_end(t->store, &last, "aa", name, DT_METRIC_LOWEST, &t->err));
    assert_float_equal(last.value, 0, 0);
    assert_good(t, dt_store_metric_names(t->store, &names, &count, "aa", &t->arena, &t->err));
    assert_int_equal(count, 2);
    /* a fork begins with its parent's curves, but runs on nodes of its own */
    test_store_run(t, "bb", "n");
    assert_good(t, dt_store_run_copy_past(t->store, "bb", "aa", 1800000000, &t->err));
    assert_good(t, dt_store_curves_find(t->store, &curves, "bb", "system/", &t->arena, &t->err));
    assert_int_equal(curves.count, 1);
    assert_string_equal(curves.curves[0].name, "system/mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_points_come_back_by_name_and_step),
        WITH_STORE(test_points_by_time_are_never_undone),
        WITH_STORE(test_a_point_that_is_sent_twice_is_stored_once_as_first_sent),
        WITH_STORE(test_nan_and_infinity_survive),
        WITH_STORE(test_the_history_of_several_attempts_is_one_line),
        WITH_STORE(test_an_attempt_from_a_later_step_undoes_nothing),
        WITH_STORE(test_the_newest_of_each_name_is_the_last_that_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
