/* How many steps the remaining epochs have, from any position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data_support.h"
#include "engine/data/data.h"

#define T      4
#define EPOCHS 3

/* A run of EPOCHS at some point. */
typedef struct progress {
    dt_sampler sampler;
    dt_recipe recipe;
    dt_budget_place place;
    int64_t step_samples; /* samples per step so far; 0: no step yet */
} progress;

/* Returns the steps that a start from here would compute. */
static int64_t budget(const progress *run, int64_t step_samples)
{
    dt_sampler sampler = run->sampler;

    assert_int_equal(dt_sampler_set_tail(&sampler, sampler.tail, step_samples, NULL), DT_OK);
    return dt_budget_steps(&run->recipe, &sampler, step_samples,
                           run->step_samples > 0 ? &run->place : NULL);
}

/* Makes `steps` more steps, of which the last `skipped` do not count; then saves. */
static void advance(progress *run, int64_t step_samples, int64_t steps, int64_t skipped)
{
    assert_int_equal(dt_sampler_set_tail(&run->sampler, run->sampler.tail, step_samples, NULL),
                     DT_OK);
    for (int64_t i = 0; i < steps; i++)
        assert_int_equal(dt_sampler_advance(&run->sampler, step_samples, NULL), DT_OK);
    run->place.step += steps - skipped;
    run->place.epoch = run->sampler.epoch;
    run->place.sample = run->sampler.sample;
    run->step_samples = step_samples;
}

static void start(progress *out, const dt_dataset *dataset, dt_tail_kind tail)
{
    *out = (progress){.recipe.schedule.epochs = EPOCHS};
    assert_int_equal(dt_sampler_init(&out->sampler, dataset, T, 7, NULL), DT_OK);
    out->sampler.tail = tail;
}

/* Counts the steps until the epochs are over. */
static int64_t walk(const progress *run, int64_t step_samples)
{
    dt_sampler sampler = run->sampler;
    int64_t steps = 0;

    assert_int_equal(dt_sampler_set_tail(&sampler, sampler.tail, step_samples, NULL), DT_OK);
    for (; sampler.epoch < EPOCHS; steps++)
        assert_int_equal(dt_sampler_advance(&sampler, step_samples, NULL), DT_OK);
    return steps;
}

static void test_epochs_end_where_they_end_however_steps_are_cut(void **state)
{
    static const int64_t cuts[] = {8, 4, 4, 5, 5, 16};
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);

    for (int tail = DT_TAIL_WRAP; tail <= DT_TAIL_DROP; tail++) {
        progress run;

        start(&run, dataset, tail);
        assert_int_equal(budget(&run, 8), walk(&run, 8));
        for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
            advance(&run, cuts[i], 7, 0);
            for (int64_t samples = 1; samples < 20; samples++)
                assert_int_equal(budget(&run, samples), run.place.step + walk(&run, samples));
        }
        dt_sampler_release(&run.sampler);
    }
    dt_dataset_close(dataset);
}

static void test_an_unchanged_resume_keeps_the_number_of_steps(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);

    for (int tail = DT_TAIL_WRAP; tail <= DT_TAIL_DROP; tail++) {
        progress run;
        int64_t all;

        start(&run, dataset, tail);
        all = budget(&run, 8);
        advance(&run, 8, 5, 0);
        assert_int_equal(budget(&run, 8), all);
        advance(&run, 8, all - 5, 0);
        assert_int_equal(budget(&run, 8), all);
        dt_sampler_release(&run.sampler);
    }
    dt_dataset_close(dataset);
}

static void test_steps_that_fp16_skips_count_in_epochs(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);

    for (int tail = DT_TAIL_WRAP; tail <= DT_TAIL_DROP; tail++) {
        progress run;
        int64_t all;

        start(&run, dataset, tail);
        all = budget(&run, 8);
        advance(&run, 8, 5, 2);
        assert_int_equal(budget(&run, 8), all - 2);
        advance(&run, 8, all - 5, 1); /* the very last step: none is left to compensate it */
        assert_int_equal(run.place.step, all - 3);
        assert_int_equal(budget(&run, 8), run.place.step);
        dt_sampler_release(&run.sampler);
    }
    dt_dataset_close(dataset);
}

static void test_steps_that_fp16_skips_do_not_count_as_steps(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);
    progress run;

    start(&run, dataset, DT_TAIL_WRAP);
    run.recipe.schedule.steps = 20;
    assert_int_equal(budget(&run, 8), 20);
    advance(&run, 8, 5, 2);
    assert_int_equal(budget(&run, 8), 20);
    dt_sampler_release(&run.sampler);
    dt_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_epochs_end_where_they_end_however_steps_are_cut,
                                        data_folder_make, data_folder_remove),
        cmocka_unit_test_setup_teardown(test_an_unchanged_resume_keeps_the_number_of_steps,
                                        data_folder_make, data_folder_remove),
        cmocka_unit_test_setup_teardown(test_steps_that_fp16_skips_count_in_epochs,
                                        data_folder_make, data_folder_remove),
        cmocka_unit_test_setup_teardown(test_steps_that_fp16_skips_do_not_count_as_steps,
                                        data_folder_make, data_folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
