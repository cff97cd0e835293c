/* Which runs of a sweep are stopped early. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runner/sweep/halving.h"

static void test_the_first_to_come_is_never_cut(void **state)
{
    const double values[] = {5, NAN, NAN};
    const bool there[] = {true, false, false};

    (void)state;
    assert_false(dt_halving_cuts(values, there, 3, 0, 0.5));
    assert_false(dt_halving_cuts(values, there, 3, 1, 0.5));
}

static void test_the_better_half_goes_on(void **state)
{
    const double values[] = {3, 1, 4, 2, 9};
    const bool there[] = {true, true, true, true, false};
    const bool cut[] = {true, false, true, false, false};

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(dt_halving_cuts(values, there, 5, i, 0.5), cut[i]);
}

static void test_what_is_kept_is_rounded_up(void **state)
{
    const double values[] = {3, 1, 2};
    const bool there[] = {true, true, true};

    (void)state;
    assert_true(dt_halving_cuts(values, there, 3, 0, 0.5));
    assert_false(dt_halving_cuts(values, there, 3, 2, 0.5));
    assert_false(dt_halving_cuts(values, there, 3, 1, 0.001));
    assert_true(dt_halving_cuts(values, there, 3, 2, 0.001));
    for (int i = 0; i < 3; i++)
        assert_false(dt_halving_cuts(values, there, 3, i, 1));
}

static void test_of_equals_the_earlier_wins_and_no_number_is_the_worst(void **state)
{
    const double values[] = {NAN, 2, 2, NAN};
    const bool there[] = {true, true, true, true};

    (void)state;
    assert_false(dt_halving_cuts(values, there, 4, 1, 0.25));
    assert_true(dt_halving_cuts(values, there, 4, 2, 0.25));
    assert_true(dt_halving_cuts(values, there, 4, 0, 0.5));
    assert_false(dt_halving_cuts(values, there, 4, 0, 0.75));
    assert_true(dt_halving_cuts(values, there, 4, 3, 0.75));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_to_come_is_never_cut),
        cmocka_unit_test(test_the_better_half_goes_on),
        cmocka_unit_test(test_what_is_kept_is_rounded_up),
        cmocka_unit_test(test_of_equals_the_earlier_wins_and_no_number_is_the_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
