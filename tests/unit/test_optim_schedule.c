/* The learning rate, compared with the formulas of the header. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/optim/schedule.h"

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

/* cos at 0, 45, 60, 90, 120, 135 degrees of the half turn: values that are known exactly */
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

static void test_past_the_last_step_the_formula_continues(void **state)
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

static void test_very_many_periods_are_fast(void **state)
{
    dt_recipe r = recipe();

    r.schedule.period_steps = 2;
    r.schedule.shrink = 1;
    r.schedule.warmup_steps = 0;
    expect_rate(&r, INT64_C(4000000000000), 1.0);
    expect_rate(&r, INT64_C(4000000000001), 0.6);
}

#define STEPS 12

typedef struct row {
    dt_schedule_kind kind;
    double lr[STEPS];
} row;

/* The formulas of schedule.h in decimal arithmetic of 50 digits: lr 1, min_lr and warmup_init_lr
 * 0.2, 8 steps of warm-up out of 108, power 1.5, decay_steps 20. */
static const int64_t table_steps[STEPS] = {0, 3, 8, 9, 33, 58, 87, 88, 98, 107, 108, 140};
static const row table[] = {
    {DT_SCHEDULE_COSINE,
     {0.20000000000000001, 0.5, 1, 0.99980262414629262, 0.88284271247461898, 0.59999999999999998,
      0.28393799504972383, 0.27639320225002101, 0.21957739348193858, 0.20019737585370737,
      0.10000000000000001, 0.081433071799159859}},
    {DT_SCHEDULE_INVERSE_SQRT,
     {0.20000000000000001, 0.5, 1, 0.94280904158206336, 0.49236596391733095, 0.37139067635410372,
      0.30323921743156135, 0.30151134457776363, 0.2857142857142857, 0.27343437080986532,
      0.27216552697590868, 0.23904572186687872}},
    {DT_SCHEDULE_LINEAR,
     {0.20000000000000001, 0.5, 1, 0.99199999999999999, 0.80000000000000004, 0.59999999999999998,
      0.36799999999999999, 0.35999999999999999, 0.28000000000000003, 0.20799999999999999,
      0.20000000000000001, 0.20000000000000001}},
    {DT_SCHEDULE_POLYNOMIAL,
     {0.20000000000000001, 0.5, 1, 0.98803005018844303, 0.7196152422706632, 0.48284271247461902,
      0.27698727167525811, 0.27155417527999326, 0.22529822128134702, 0.20080000000000001,
      0.20000000000000001, 0.20000000000000001}},
    {DT_SCHEDULE_CONSTANT, {0.20000000000000001, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {DT_SCHEDULE_WARMUP_STABLE_DECAY,
     {0.20000000000000001, 0.5, 1, 1, 1, 1, 1, 1, 0.59999999999999998, 0.23999999999999999,
      0.20000000000000001, 0.20000000000000001}},
};

static void test_every_schedule_has_the_values_of_its_formula(void **state)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        dt_recipe r = recipe();

        r.schedule.kind = table[i].kind;
        r.schedule.power = 1.5;
        r.schedule.decay_steps = 20;
        for (int s = 0; s < STEPS; s++)
            expect_rate(&r, table_steps[s], table[i].lr[s]);
    }
}

static void test_inverse_sqrt_without_warmup_starts_at_the_rate(void **state)
{
    dt_recipe r = recipe();

    r.schedule.kind = DT_SCHEDULE_INVERSE_SQRT;
    r.schedule.warmup_steps = 0;
    r.schedule.min_lr = 0;
    expect_rate(&r, 0, 1.0);
    expect_rate(&r, 1, 1.0);
    expect_rate(&r, 4, 0.5);
    expect_rate(&r, 10000, 0.01);
}

static void test_decay_takes_a_tenth_of_the_run_and_never_starts_within_warmup(void **state)
{
    dt_recipe r = recipe();

    r.schedule.kind = DT_SCHEDULE_WARMUP_STABLE_DECAY;
    r.schedule.steps = 100;
    expect_rate(&r, 90, 1.0);
    expect_rate(&r, 95, 0.6);
    r.schedule.decay_steps = 1000;
    expect_rate(&r, 8, 1.0);
    expect_rate(&r, 8 + 46, 0.6);
    r.schedule.decay_steps = 0;
    r.schedule.steps = 3;
    r.schedule.warmup_steps = 0;
    expect_rate(&r, 1, 1.0);
    expect_rate(&r, 2, 1.0);
    expect_rate(&r, 3, 0.2);
}

static void test_a_run_that_is_all_warmup_ends_at_the_minimum_of_what_falls(void **state)
{
    static const dt_schedule_kind falling[] = {DT_SCHEDULE_LINEAR, DT_SCHEDULE_POLYNOMIAL,
                                               DT_SCHEDULE_WARMUP_STABLE_DECAY};

    for (size_t i = 0; i < sizeof(falling) / sizeof(falling[0]); i++) {
        dt_recipe r = recipe();

        r.schedule.kind = falling[i];
        r.schedule.power = 2;
        r.schedule.warmup_steps = 108;
        expect_rate(&r, 54, 0.6);
        expect_rate(&r, 108, 0.2);
    }
}

static void test_clip_scales_down_to_the_limit_and_never_up(void **state)
{
    assert_true(fabs(dt_clip_factor(4.0, 1.0) - 0.25) < 1e-6);
    /* Below 0.25 because of the 1e-6 in the divisor. */
    assert_true(dt_clip_factor(4.0, 1.0) < 0.25);
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
        cmocka_unit_test(test_past_the_last_step_the_formula_continues),
        cmocka_unit_test(test_a_run_that_is_all_warmup_never_divides_by_zero),
        cmocka_unit_test(test_very_many_periods_are_fast),
        cmocka_unit_test(test_every_schedule_has_the_values_of_its_formula),
        cmocka_unit_test(test_inverse_sqrt_without_warmup_starts_at_the_rate),
        cmocka_unit_test(test_decay_takes_a_tenth_of_the_run_and_never_starts_within_warmup),
        cmocka_unit_test(test_a_run_that_is_all_warmup_ends_at_the_minimum_of_what_falls),
        cmocka_unit_test(test_clip_scales_down_to_the_limit_and_never_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
