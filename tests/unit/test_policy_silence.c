#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/supervisor/policy/watchdog.h"

#define HANG 30.0

/* Makes the steps `first` to `last`, one every gap_ms; returns the time of the last. */
static int64_t train(dt_silence *silence, int64_t first, int64_t last, int64_t at_ms,
                     int64_t gap_ms)
{
    for (int64_t step = first; step <= last; step++, at_ms += gap_ms)
        dt_silence_step(silence, step, at_ms);
    return at_ms - gap_ms;
}

static void test_set_up_has_the_most_time(void **state)
{
    dt_silence silence;

    dt_silence_init(&silence, HANG);
    assert_float_equal(dt_silence_limit(&silence), 60 * HANG, 0);
    assert_true(dt_silence_enter(&silence, "train", 1000));
    assert_float_equal(dt_silence_limit(&silence), 10 * HANG, 0); /* limit of the first step */
    dt_silence_pass(&silence, 2); /* it may have started much earlier */
    dt_silence_pass(&silence, 31);
    assert_float_equal(silence.seconds, 31, 1e-9);
}

static void test_five_times_the_usual_step_and_no_less_than_the_floor(void **state)
{
    dt_silence silence;
    int64_t at_ms;

    dt_silence_init(&silence, HANG);
    at_ms = train(&silence, 1, 20, 1000, 500);
    assert_float_equal(dt_silence_limit(&silence), HANG, 0);
    assert_float_equal(dt_silence_usual(&silence), 0.5, 1e-9);
    at_ms = train(&silence, 21, 22, at_ms + 12000, 12000);
    assert_float_equal(dt_silence_limit(&silence), 60, 1e-9);
    assert_float_equal(dt_silence_usual(&silence), 12, 1e-9);
    train(&silence, 23, 40, at_ms + 500, 500); /* the slow steps are forgotten */
    assert_float_equal(dt_silence_limit(&silence), HANG, 0);
    dt_silence_pass(&silence, 2);
    dt_silence_pass(&silence, 800);
    assert_false(dt_silence_step(&silence, 40, 900000)); /* a repeated step does not count */
    assert_float_equal(silence.seconds, 800, 1e-9);
}

static void test_steps_known_from_the_history_leave_the_first_save_unknown(void **state)
{
    dt_silence silence;
    int64_t at_ms;

    dt_silence_init(&silence, HANG);
    at_ms = train(&silence, 1, 20, 1000, 500);
    dt_silence_recall(&silence);
    assert_float_equal(dt_silence_usual(&silence), 10 * HANG, 0);
    dt_silence_step(&silence, 21, at_ms + 500); /* it is heard again */
    assert_float_equal(dt_silence_usual(&silence), 0.5, 1e-9);
}

static void test_what_a_step_takes_at_least_counts_until_the_first_gap(void **state)
{
    dt_silence silence;

    dt_silence_init(&silence, HANG);
    silence.ideal_step_seconds = 67.84;
    dt_silence_enter(&silence, "train", 1000);
    assert_float_equal(dt_silence_limit(&silence), 5 * 67.84, 1e-9);
    dt_silence_step(&silence, 1, 57000); /* the first step's time does not count */
    assert_float_equal(dt_silence_limit(&silence), 5 * 67.84, 1e-9);
    dt_silence_step(&silence, 2, 67000);
    assert_float_equal(dt_silence_limit(&silence), 50, 1e-9);
}

static void test_seldom_phases_learn_their_own_time(void **state)
{
    dt_silence silence;
    int64_t at_ms;

    dt_silence_init(&silence, HANG);
    at_ms = train(&silence, 1, 10, 1000, 500);
    dt_silence_enter(&silence, "save", at_ms);
    assert_float_equal(dt_silence_limit(&silence), 10 * HANG, 0);
    dt_silence_enter(&silence, "train", at_ms + 100000);
    assert_float_equal(dt_silence_limit(&silence), HANG, 0); /* a save is not a gap between steps */
    dt_silence_enter(&silence, "save", at_ms + 100500);
    assert_float_equal(dt_silence_limit(&silence), 500, 1e-9);
    dt_silence_enter(&silence, "evaluate", at_ms + 101000);
    assert_float_equal(dt_silence_limit(&silence), 10 * HANG, 0);
    assert_false(dt_silence_enter(&silence, "daydream", at_ms + 200000));
    assert_int_equal(silence.phase, DT_SILENCE_EVALUATE);
}

static void test_what_was_never_done_may_take_what_is_not_unusual(void **state)
{
    dt_silence silence;
    int64_t at_ms;

    dt_silence_init(&silence, HANG);
    dt_silence_enter(&silence, "train", 500);
    assert_float_equal(dt_silence_usual(&silence), 10 * HANG, 0); /* usual time of the first step */
    train(&silence, 1, 1, 1000, 500);
    assert_float_equal(dt_silence_usual(&silence), HANG, 0); /* usual time of later steps */
    at_ms = train(&silence, 2, 10, 1500, 500);
    dt_silence_enter(&silence, "save", at_ms);
    assert_float_equal(dt_silence_usual(&silence), 10 * HANG, 0);
    dt_silence_enter(&silence, "train", at_ms + 7000);
    assert_float_equal(dt_silence_usual(&silence), 0.5, 1e-9);
    dt_silence_enter(&silence, "save", at_ms + 7500);
    assert_float_equal(dt_silence_usual(&silence), 7, 1e-9);
    dt_silence_enter(&silence, "evaluate", at_ms + 14500);
    assert_float_equal(dt_silence_usual(&silence), 10 * HANG, 0);
}

static void test_a_save_within_a_millisecond_is_known(void **state)
{
    dt_silence silence;
    int64_t at_ms;

    dt_silence_init(&silence, HANG);
    at_ms = train(&silence, 1, 10, 1000, 500);
    dt_silence_enter(&silence, "save", at_ms);
    dt_silence_enter(&silence, "train", at_ms);
    dt_silence_enter(&silence, "save", at_ms + 1000);
    assert_float_equal(dt_silence_usual(&silence), 0.5, 1e-9);
    assert_float_equal(dt_silence_limit(&silence), 10 * HANG, 0);
    dt_silence_enter(&silence, "evaluate", at_ms + 2000);
    dt_silence_enter(&silence, "train", at_ms - 5000); /* the clock was set back */
    dt_silence_enter(&silence, "evaluate", at_ms - 4000);
    assert_float_equal(dt_silence_usual(&silence), 10 * HANG, 0);
}

static void test_late_news_is_not_a_slow_step(void **state)
{
    dt_silence silence;

    dt_silence_init(&silence, HANG);
    train(&silence, 1, 5, 1000, 500);
    dt_silence_pass(&silence, 2);
    dt_silence_pass(&silence, 4);       /* seen before a connection was cut for a minute */
    dt_silence_step(&silence, 6, 3500); /* it came at once by the node's clock */
    assert_float_equal(dt_silence_limit(&silence), HANG, 0);
    assert_float_equal(silence.seconds, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_up_has_the_most_time),
        cmocka_unit_test(test_five_times_the_usual_step_and_no_less_than_the_floor),
        cmocka_unit_test(test_steps_known_from_the_history_leave_the_first_save_unknown),
        cmocka_unit_test(test_what_a_step_takes_at_least_counts_until_the_first_gap),
        cmocka_unit_test(test_seldom_phases_learn_their_own_time),
        cmocka_unit_test(test_what_was_never_done_may_take_what_is_not_unusual),
        cmocka_unit_test(test_a_save_within_a_millisecond_is_known),
        cmocka_unit_test(test_late_news_is_not_a_slow_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
