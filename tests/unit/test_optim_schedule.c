/* The learning rate, value by value against the formulas of the header. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/optim/clip.h"
#include "engine/optim/schedule.h"

#include "base/banned.h"

#define HALF_SQRT_2 0.70710678118654752

static dt_recipe recipe(void)
{
    dt_recipe r = {0};

    r.optimizer.lr = 1.0;
    r.schedule.kind = DT_SCHEDULE_COSINE;
    r.schedule.steps = 108;
    r.schedule.warmup_steps = 8;
    r.schedule.warmup_init_lr = 0.2;
    r.schedule.min_lr = 0.2;
    r.schedule.period_mult = 1;
    r.schedule.shrink = 0.1;
    return r;
}

static void expect_rate(const dt_recipe *r, int64_t step, double expected)
{
    double got = dt_schedule_lr(r, step);

    if (!(fabs(got - expected) <= 1e-13))
        fail_msg("step %lld: %.17g, expected %.17g", (long long)step, got, expected);
}

static void test_warmup_is_a_straight_line_that_ends_at_the_rate(void **state)
{
    dt_recipe r = recipe();

    expect_rate(&r, 0, 0.2);
    expect_rate(&r, 1, 0.3);
    expect_rate(&r, 4, 0.6);
    expect_rate(&r, 7, 0.9);
    expect_rate(&r, 8, 1.0);
    r.schedule.warmup_init_lr = 0;
    expect_rate(&r, 0, 0);
    expect_rate(&r, 2, 0.25);
}

static void test_without_warmup_the_first_step_has_the_rate(void **state)
{
    dt_recipe r = recipe();

    r.schedule.warmup_steps = 0;
    expect_rate(&r, 0, 1.0);
}

/* cos at 0, 45, 60, 90, 120, 135 degrees of the half turn, so the values are known by heart */
static void test_cosine_falls_from_the_rate_to_the_minimum(void **state)
{
    dt_recipe r = recipe();

    r.schedule.warmup_steps = 12;
    r.schedule.steps = 12 + 120;
    expect_rate(&r, 12, 1.0);
    expect_rate(&r, 12 + 30, 0.6 + 0.4 * HALF_SQRT_2);
    expect_rate(&r, 12 + 40, 0.8);
    expect_rate(&r, 12 + 60, 0.6);
    expect_rate(&r, 12 + 80, 0.4);
    expect_rate(&r, 12 + 90, 0.6 - 0.4 * HALF_SQRT_2);
    expect_rate(&r, 12 + 119, 0.6 + 0.4 * cos(3.14159265358979323846 * 119 / 120));
}

static void test_a_new_period_starts_at_both_ends_shrunk(void **state)
{
    dt_recipe r = recipe();

    r.schedule.period_steps = 60;
    expect_rate(&r, 8, 1.0);
    expect_rate(&r, 8 + 30, 0.6);
    expect_rate(&r, 8 + 60, 0.1);
    expect_rate(&r, 8 + 60 + 20, 0.08);
    expect_rate(&r, 8 + 60 + 30, 0.06);
    expect_rate(&r, 8 + 120, 0.01);
    r.schedule.shrink = 1;
    expect_rate(&r, 8 + 60, 1.0);
    expect_rate(&r, 8 + 60 + 30, 0.6);
}

static void test_periods_grow_by_the_factor(void **state)
{
    dt_recipe r = recipe();

    r.schedule.period_steps = 20; /* then 40, then 80 */
    r.schedule.period_mult = 2;
    expect_rate(&r, 8 + 10, 0.6);
    expect_rate(&r, 8 + 20, 0.1);
    expect_rate(&r, 8 + 20 + 20, 0.06);
    expect_rate(&r, 8 + 20 + 40, 0.01);
    expect_rate(&r, 8 + 20 + 40 + 40, 0.006);
    expect_rate(&r, 8 + 20 + 40 + 80, 0.001);
}

static void test_periods_that_shrink_below_a_step_end_at_the_minimum(void **state)
{
    dt_recipe r = recipe();

    r.schedule.period_steps = 8; /* then 4, 2, 1: fifteen steps in all */
    r.schedule.period_mult = 0.5;
    r.schedule.shrink = 1;
    expect_rate(&r, 8 + 14, 1.0);
    expect_rate(&r, 8 + 1000000, 0.2);
}

static void test_past_the_last_step_the_formula_goes_on(void **state)
{
    dt_recipe r = recipe();

    expect_rate(&r, 108, 0.1);
    expect_rate(&r, 108 + 50, 0.06);
}

static void test_a_run_that_is_all_warmup_never_divides_by_zero(void **state)
{
    dt_recipe r = recipe();

    r.schedule.warmup_steps = 108;
    expect_rate(&r, 54, 0.6);
    expect_rate(&r, 108, 1.0);
    r.schedule.warmup_steps = 1000;
    expect_rate(&r, 500, 0.6);
}

static void test_very_many_periods_take_no_time(void **state)
{
    dt_recipe r = recipe();

    r.schedule.period_steps = 2;
    r.schedule.shrink = 1;
    r.schedule.warmup_steps = 0;
    expect_rate(&r, INT64_C(4000000000000), 1.0);
    expect_rate(&r, INT64_C(4000000000001), 0.6);
}

static void test_clip_scales_down_to_the_limit_and_never_up(void **state)
{
    assert_true(fabs(dt_clip_factor(4.0, 1.0) - 0.25) < 1e-6);
    assert_true(dt_clip_factor(4.0, 1.0) < 0.25); /* the 1e-6 below the line */
    assert_true(dt_clip_factor(0.5, 1.0) == 1.0);
    assert_true(dt_clip_factor(0.0, 1.0) == 1.0);
    assert_true(dt_clip_factor(1e30, 0.0) == 1.0);
    assert_true(dt_clip_factor((double)INFINITY, 1.0) == 0.0);
    assert_true(isnan(dt_clip_factor((double)NAN, 1.0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warmup_is_a_straight_line_that_ends_at_the_rate),
        cmocka_unit_test(test_without_warmup_the_first_step_has_the_rate),
        cmocka_unit_test(test_cosine_falls_from_the_rate_to_the_minimum),
        cmocka_unit_test(test_a_new_period_starts_at_both_ends_shrunk),
        cmocka_unit_test(test_periods_grow_by_the_factor),
        cmocka_unit_test(test_periods_that_shrink_below_a_step_end_at_the_minimum),
        cmocka_unit_test(test_past_the_last_step_the_formula_goes_on),
        cmocka_unit_test(test_a_run_that_is_all_warmup_never_divides_by_zero),
        cmocka_unit_test(test_very_many_periods_take_no_time),
        cmocka_unit_test(test_clip_scales_down_to_the_limit_and_never_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
