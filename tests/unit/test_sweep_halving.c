/* Which runs of a sweep are stopped early. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runner/sweep/sweep_int.h"

enum { RUNG = 100 };

/* Calls dt_halving_cuts for runs that were not cut before. */
static bool cuts(const double *values, const bool *there, int64_t count, int64_t which, double keep)
{
    dt_halving_run runs[8];

    for (int64_t i = 0; i < count; i++)
        runs[i] = (dt_halving_run){.value = values[i], .there = there[i]};
    return dt_halving_cuts(runs, count, which, RUNG, keep);
}

static void test_the_first_to_come_is_never_cut(void **state)
{
    const double values[] = {5, NAN, NAN};
    const bool there[] = {true, false, false};

    (void)state;
    assert_false(cuts(values, there, 3, 0, 0.5));
    assert_false(cuts(values, there, 3, 1, 0.5));
}

static void test_the_better_half_continues(void **state)
{
    const double values[] = {3, 1, 4, 2, 9};
    const bool there[] = {true, true, true, true, false};
    const bool cut[] = {true, false, true, false, false};

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(cuts(values, there, 5, i, 0.5), cut[i]);
}

static void test_what_is_kept_is_rounded_up(void **state)
{
    const double values[] = {3, 1, 2};
    const bool there[] = {true, true, true};

    (void)state;
    assert_true(cuts(values, there, 3, 0, 0.5));
    assert_false(cuts(values, there, 3, 2, 0.5));
    assert_false(cuts(values, there, 3, 1, 0.001));
    assert_true(cuts(values, there, 3, 2, 0.001));
    for (int i = 0; i < 3; i++)
        assert_false(cuts(values, there, 3, i, 1));
}

static void test_the_earlier_of_equals_wins_and_nan_is_the_worst(void **state)
{
    const double values[] = {NAN, 2, 2, NAN};
    const bool there[] = {true, true, true, true};

    (void)state;
    assert_false(cuts(values, there, 4, 1, 0.25));
    assert_true(cuts(values, there, 4, 2, 0.25));
    assert_true(cuts(values, there, 4, 0, 0.5));
    assert_false(cuts(values, there, 4, 0, 0.75));
    assert_true(cuts(values, there, 4, 3, 0.75));
}

static void test_who_was_cut_at_an_earlier_rung_does_not_compete(void **state)
{
    const dt_halving_run runs[] = {{.value = 1, .there = true, .cut = RUNG},
                                   {.value = 2, .there = true}};

    (void)state;
    assert_true(cuts((double[]){1, 2}, (bool[]){true, true}, 2, 1, 0.5));
    assert_false(dt_halving_cuts(runs, 2, 1, 2 * RUNG, 0.5));
}

static void test_of_a_circle_of_better_ones_one_continues(void **state)
{
    /* Run 0 was cut at 200 by run 1, which was cut at 100 by run 2, which is worse than run 0 at 200. */
    const dt_halving_run runs[] = {{.value = 2, .there = true, .cut = 2 * RUNG},
                                   {.value = 1, .there = true, .cut = RUNG},
                                   {.value = 3, .there = true}};

    (void)state;
    assert_false(dt_halving_cuts(runs, 3, 2, 2 * RUNG, 0.5));
}

/* --- random schedules */

enum { RUNS_MOST = 8, LAST = 8 * RUNG };

typedef struct point {
    double values[LAST / RUNG + 1];
    int64_t step, cut;
    int begins, lag; /* checks before it begins; steps that it makes after it was cut */
} point;

static uint64_t seed;

static int below(int limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)limit);
}

static int64_t look(dt_halving_run *runs, const point *points, int64_t count, int64_t rung)
{
    int64_t uncut = 0;

    for (int64_t i = 0; i < count; i++) {
        runs[i] = (dt_halving_run){.value = points[i].values[rung / RUNG],
                                   .there = points[i].step >= rung,
                                   .cut = points[i].cut};
        uncut += runs[i].there && runs[i].cut == 0;
    }
    return uncut;
}

/* Checks every rung and every run that was not cut, as the driver does. One run at a rung stays. */
static void cut_all(point *points, int64_t count, double keep)
{
    dt_halving_run runs[RUNS_MOST];

    for (int64_t rung = RUNG; rung <= LAST; rung *= 2) {
        int64_t before = look(runs, points, count, rung);

        for (int64_t i = 0; i < count; i++)
            if (points[i].cut == 0 && dt_halving_cuts(runs, count, i, rung, keep))
                points[i].cut = runs[i].cut = rung;
        assert_true(before == 0 || look(runs, points, count, rung) > 0);
    }
}

static void begin_points(point *points, int64_t count, bool together)
{
    for (int64_t i = 0; i < count; i++) {
        points[i] =
            (point){.begins = together ? 0 : below(40), .lag = together ? 0 : below(3 * RUNG)};
        for (int j = 0; j <= LAST / RUNG; j++)
            points[i].values[j] = below(12) == 0 ? NAN : below(1000);
    }
}

static void test_never_all_are_cut(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        int64_t count = 1 + below(RUNS_MOST), uncut = 0;
        double keep = 0.1 + below(10) * 0.1;
        point points[RUNS_MOST];

        begin_points(points, count, false);
        for (int time = 0; time < 100; time++) {
            for (int64_t i = 0; i < count; i++) {
                int64_t most = points[i].cut > 0 ? points[i].cut + points[i].lag : LAST;
                int64_t next = points[i].step + (time < points[i].begins ? 0 : below(60));

                points[i].step = next > most && points[i].step < most ? most
                                 : next > most                        ? points[i].step
                                                                      : next;
            }
            cut_all(points, count, keep);
        }
        for (int64_t i = 0; i < count; i++)
            uncut += points[i].cut == 0;
        assert_true(uncut > 0);
    }
}

static void test_the_rule_gives_the_number_of_cuts(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        int64_t count = 1 + below(RUNS_MOST), left = count;
        double keep = 0.1 + below(10) * 0.1;
        point points[RUNS_MOST];

        begin_points(points, count, true);
        for (int64_t rung = RUNG; rung <= LAST; rung *= 2) {
            int64_t uncut = 0, places = (int64_t)ceil(keep * (double)left - 1e-9);

            for (int64_t i = 0; i < count; i++)
                points[i].step = points[i].cut == 0 ? rung : points[i].step;
            cut_all(points, count, keep);
            for (int64_t i = 0; i < count; i++)
                uncut += points[i].cut == 0;
            assert_int_equal(uncut, places > 1 ? places : 1);
            left = uncut;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_to_come_is_never_cut),
        cmocka_unit_test(test_the_better_half_continues),
        cmocka_unit_test(test_what_is_kept_is_rounded_up),
        cmocka_unit_test(test_the_earlier_of_equals_wins_and_nan_is_the_worst),
        cmocka_unit_test(test_who_was_cut_at_an_earlier_rung_does_not_compete),
        cmocka_unit_test(test_of_a_circle_of_better_ones_one_continues),
        cmocka_unit_test(test_never_all_are_cut),
        cmocka_unit_test(test_the_rule_gives_the_number_of_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
