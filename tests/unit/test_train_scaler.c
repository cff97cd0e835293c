/* The loss scale of fp16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "engine/optim/schedule.h"

static dt_scaler scaler_of(dt_precision_kind kind)
{
    dt_recipe recipe = {
        .precision = {.kind = kind, .loss_scale = 1024, .scale_window = 3, .min_loss_scale = 100}};
    dt_scaler scaler;

    dt_scaler_init(&scaler, &recipe);
    return scaler;
}

static bool skipped(dt_scaler *scaler, double norm)
{
    bool skip;

    assert_int_equal(dt_scaler_step(scaler, norm, &skip, NULL), DT_OK);
    return skip;
}

static void test_a_window_of_clean_steps_doubles_it(void **state)
{
    dt_scaler scaler = scaler_of(DT_PRECISION_FP16);

    for (int i = 0; i < 2; i++)
        assert_false(skipped(&scaler, 1));
    assert_true(scaler.scale == 1024);
    assert_false(skipped(&scaler, 1));
    assert_true(scaler.scale == 2048 && scaler.clean_steps == 0);
}

static void test_an_overflow_is_skipped_halves_it_and_restarts_the_window(void **state)
{
    dt_scaler scaler = scaler_of(DT_PRECISION_FP16);

    assert_false(skipped(&scaler, 1));
    assert_false(skipped(&scaler, 1));
    assert_true(skipped(&scaler, INFINITY));
    assert_true(skipped(&scaler, NAN));
    assert_true(scaler.scale == 256 && scaler.skipped_steps == 2);
    for (int i = 0; i < 2; i++)
        assert_false(skipped(&scaler, 1));
    assert_true(scaler.scale == 256);
    assert_false(skipped(&scaler, 1));
    assert_true(scaler.scale == 512);
}

static void test_below_its_floor_the_run_fails(void **state)
{
    dt_scaler scaler = scaler_of(DT_PRECISION_FP16);
    dt_error err = DT_ERROR_INIT;
    bool skip;

    for (int i = 0; i < 3; i++)
        assert_true(skipped(&scaler, INFINITY));
    assert_int_equal(dt_scaler_step(&scaler, INFINITY, &skip, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "fallen to 64, below 'precision.min_loss_scale' 100"));
}

static void test_the_scale_stays_finite_if_gradients_stay_small(void **state)
{
    dt_scaler scaler = scaler_of(DT_PRECISION_FP16);

    for (int i = 0; i < 1000; i++)
        assert_false(skipped(&scaler, 0));
    assert_true(isfinite((float)scaler.scale));
    assert_true(skipped(&scaler, INFINITY)); /* it decreases again from there */
    assert_true(scaler.scale < 0x1p60);
}

static void test_other_precisions_have_none(void **state)
{
    dt_scaler scaler = scaler_of(DT_PRECISION_BF16);

    assert_true(scaler.scale == 1);
    assert_false(skipped(&scaler, INFINITY)); /* a divergence, which the step reports */
    assert_true(scaler.scale == 1 && scaler.skipped_steps == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_window_of_clean_steps_doubles_it),
        cmocka_unit_test(test_an_overflow_is_skipped_halves_it_and_restarts_the_window),
        cmocka_unit_test(test_below_its_floor_the_run_fails),
        cmocka_unit_test(test_the_scale_stays_finite_if_gradients_stay_small),
        cmocka_unit_test(test_other_precisions_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
