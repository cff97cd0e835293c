/* Which validation loss is the best of a run, while its save may still fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/train/session.h"

static void test_answers_by_what_is_saved_and_what_is_being_saved(void **state)
{
    static const struct {
        double loss, saving, seen;
        bool is, depends;
    } cases[] = {
        {NAN, NAN, 2.0, true, false},  /* the first */
        {2.0, NAN, 1.9, true, false},  /* lower */
        {2.0, NAN, 2.0, true, false},  /* a tie: the newer */
        {2.0, NAN, 2.1, false, false}, /* higher */
        {2.0, NAN, NAN, false, false}, /* no loss */
        {NAN, NAN, NAN, false, false},
        {2.0, 1.5, 1.4, true, false}, /* lower than both: the best, even if that save fails */
        {2.0, 1.5, 1.5, true, false},
        {2.0, 1.5, 2.1, false, false}, /* higher than both */
        {2.0, 1.5, 1.7, false, true},  /* between them */
        {2.0, 1.5, 2.0, false, true},
        {NAN, 1.5, 9.0, false, true}, /* none is saved yet */
        {NAN, 1.5, 1.2, true, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_best best = {cases[i].loss, cases[i].saving};

        assert_int_equal(dt_best_is(&best, cases[i].seen), cases[i].is);
        assert_int_equal(dt_best_depends(&best, cases[i].seen), cases[i].depends);
    }
}

static void test_a_save_that_failed_leaves_the_best_as_it_was(void **state)
{
    dt_best best = {NAN, NAN};

    dt_best_end(&best, true); /* a save for another reason */
    assert_true(isnan(best.score));
    dt_best_begin(&best, 2.0);
    dt_best_end(&best, false);
    assert_true(dt_best_is(&best, 3.0)); /* none is saved */
    dt_best_begin(&best, 3.0);
    dt_best_end(&best, true);
    assert_true(best.score == 3.0);
    dt_best_begin(&best, 2.5);
    dt_best_end(&best, false);
    assert_true(dt_best_is(&best, 2.8));
    assert_false(dt_best_is(&best, 3.1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_by_what_is_saved_and_what_is_being_saved),
        cmocka_unit_test(test_a_save_that_failed_leaves_the_best_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
