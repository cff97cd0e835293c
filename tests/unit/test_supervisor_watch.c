#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/supervisor/watch.h"

#define HANG 30.0

/* Steps `first` to `last`, one every gap_ms; returns the time of the last. */
static int64_t train(dt_watch *watch, int64_t first, int64_t last, int64_t at_ms, int64_t gap_ms)
{
    for (int64_t step = first; step <= last; step++, at_ms += gap_ms)
        dt_watch_step(watch, step, at_ms, (double)at_ms / 1000);
    return at_ms - gap_ms;
}

static void test_set_up_has_the_most_time(void **state)
{
    dt_watch watch;

    dt_watch_init(&watch, HANG, 100);
    assert_float_equal(dt_watch_limit(&watch), 60 * HANG, 0);
    dt_watch_enter(&watch, "train", 1000, 101);
    assert_float_equal(dt_watch_limit(&watch), 10 * HANG, 0); /* of the first step */
    assert_float_equal(dt_watch_silent(&watch, 131), 30, 1e-9);
}

static void test_five_times_the_usual_step_and_no_less_than_the_floor(void **state)
{
    dt_watch watch;
    int64_t at_ms;

    dt_watch_init(&watch, HANG, 0);
    at_ms = train(&watch, 1, 20, 1000, 500);
    assert_float_equal(dt_watch_limit(&watch), HANG, 0);
    at_ms = train(&watch, 21, 22, at_ms + 12000, 12000);
    assert_float_equal(dt_watch_limit(&watch), 60, 1e-9);
    train(&watch, 23, 40, at_ms + 500, 500); /* the slow ones are forgotten */
    assert_float_equal(dt_watch_limit(&watch), HANG, 0);
    dt_watch_step(&watch, 40, 900000, 900); /* a step twice is no step */
    assert_true(dt_watch_silent(&watch, 900) > 800);
}

static void test_seldom_phases_learn_their_own_time(void **state)
{
    dt_watch watch;
    int64_t at_ms;

    dt_watch_init(&watch, HANG, 0);
    at_ms = train(&watch, 1, 10, 1000, 500);
    dt_watch_enter(&watch, "save", at_ms, 6);
    assert_float_equal(dt_watch_limit(&watch), 10 * HANG, 0);
    dt_watch_enter(&watch, "train", at_ms + 100000, 106);
    assert_float_equal(dt_watch_limit(&watch), HANG, 0); /* a save is no gap between steps */
    dt_watch_enter(&watch, "save", at_ms + 100500, 107);
    assert_float_equal(dt_watch_limit(&watch), 500, 1e-9);
    dt_watch_enter(&watch, "evaluate", at_ms + 101000, 108);
    assert_float_equal(dt_watch_limit(&watch), 10 * HANG, 0);
    dt_watch_enter(&watch, "daydream", at_ms + 200000, 208);
    assert_int_equal(watch.phase, DT_WATCH_EVALUATE);
}

static void test_news_that_came_late_is_not_a_slow_step(void **state)
{
    dt_watch watch;

    dt_watch_init(&watch, HANG, 0);
    train(&watch, 1, 5, 1000, 500);
    dt_watch_step(&watch, 6, 3500, 60); /* held back for a minute by a cut connection */
    assert_float_equal(dt_watch_limit(&watch), HANG, 0);
    assert_float_equal(dt_watch_silent(&watch, 61), 1, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_up_has_the_most_time),
        cmocka_unit_test(test_five_times_the_usual_step_and_no_less_than_the_floor),
        cmocka_unit_test(test_seldom_phases_learn_their_own_time),
        cmocka_unit_test(test_news_that_came_late_is_not_a_slow_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
