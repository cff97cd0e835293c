/* The stopwatch: parts sum to the whole time, only its thread counts, and what waits is nobody's own time. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/stopwatch.h"

static const dt_stopwatch_machine machine = {1e9, 1e10, 100};

static double sum_of(const dt_stopwatch_sums *sums)
{
    double sum = 0;

    for (int place = 0; place < DT_PLACE_COUNT; place++)
        for (int part = 0; part < DT_PART_COUNT; part++)
            sum += sums->seconds[place][part];
    return sum;
}

static void *elsewhere(void *unused)
{
    int previous = dt_stopwatch_part(DT_PART_PRODUCTS);

    dt_clock_sleep_seconds(0.02);
    dt_stopwatch_flops(DT_PART_PRODUCTS, 1e6);
    dt_stopwatch_part(previous);
    dt_stopwatch_step(0);
    return unused;
}

/* Returns the time of a step, without its last call. */
static double one_step(void)
{
    double start = dt_clock_monotonic_seconds(), seconds;
    int part;
    pthread_t thread;

    dt_stopwatch_place(DT_PLACE_FORWARD);
    dt_stopwatch_part(DT_PART_ARITHMETIC);
    part = dt_stopwatch_part(DT_PART_PRODUCTS);
    dt_clock_sleep_seconds(0.01);
    dt_stopwatch_flops(DT_PART_PRODUCTS, 500);
    dt_stopwatch_part(part);
    assert_int_equal(pthread_create(&thread, NULL, elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int unit = 2; unit >= 0; unit--) {
        dt_stopwatch_unit(unit, 3, true);
        dt_clock_sleep_seconds(unit == 1 ? 0.02 : 0.001);
        if (unit == 1) {
            part = dt_stopwatch_part(DT_PART_BLOCKED);
            dt_clock_sleep_seconds(0.03);
            dt_stopwatch_part(part);
        }
    }
    dt_stopwatch_part(DT_PART_HOST);
    dt_stopwatch_place(DT_PLACE_EVALUATE);
    dt_stopwatch_unit(1, 3, false); /* an evaluation has passes too, which are no steps */
    dt_stopwatch_flops(DT_PART_PRODUCTS, 1e6);
    dt_stopwatch_place(DT_PLACE_LOOP);
    seconds = dt_clock_monotonic_seconds() - start;
    dt_stopwatch_step(77);
    return seconds;
}

static void test_parts_are_the_whole(void **state)
{
    dt_stopwatch_sums sums;
    dt_stopwatch_machine read;
    double start = dt_clock_monotonic_seconds(), inner, outer, own;

    dt_stopwatch_begin(&machine);
    assert_false(dt_stopwatch_read(&sums, &read));
    inner = one_step();
    outer = dt_clock_monotonic_seconds() - start;
    assert_true(dt_stopwatch_read(&sums, &read));
    assert_int_equal(sums.steps, 1);
    assert_true(sum_of(&sums) >= inner && sum_of(&sums) <= outer); /* nothing is left out */
    assert_true(sums.seconds[DT_PLACE_FORWARD][DT_PART_PRODUCTS] >= 0.01);
    assert_true(sums.products_flops == 500 && sums.sent_bytes == 77);
    assert_int_equal(sums.units, 3);
    own = sums.backward_own[0] + sums.backward_own[1] + sums.backward_own[2];
    assert_true(sums.backward_own[1] >= 0.02);
    assert_true(sums.seconds[DT_PLACE_BACKWARD][DT_PART_BLOCKED] >= 0.03);
    assert_float_equal(own, sums.seconds[DT_PLACE_BACKWARD][DT_PART_ARITHMETIC], 1e-6);
    assert_true(dt_stopwatch_blocked() >= 0.03);
    assert_true(read.flops_per_second == 1e9 && read.step_bytes == 100);
}

static void test_large_messages_tell_the_bandwidth(void **state)
{
    dt_stopwatch_machine read;
    dt_stopwatch_sums sums;

    dt_stopwatch_begin(&machine);
    dt_stopwatch_message(1 << 20, 0.001);
    dt_stopwatch_message(1 << 20, 0.002);
    dt_stopwatch_message(64, 1e-9); /* too small to tell */
    dt_stopwatch_step(0);
    assert_true(dt_stopwatch_read(&sums, &read));
    assert_float_equal(sums.best_bytes_per_second, (1 << 20) / 0.001, 1);
}

static void test_more_units_than_entries(void **state)
{
    dt_stopwatch_machine read;
    dt_stopwatch_sums sums;

    dt_stopwatch_begin(&machine);
    dt_stopwatch_place(DT_PLACE_FORWARD);
    for (int unit = 99; unit >= 0; unit--)
        dt_stopwatch_unit(unit, 100, true);
    dt_stopwatch_step(0);
    assert_true(dt_stopwatch_read(&sums, &read));
    assert_int_equal(sums.units, DT_STOPWATCH_UNITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_large_messages_tell_the_bandwidth),
        cmocka_unit_test(test_more_units_than_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
