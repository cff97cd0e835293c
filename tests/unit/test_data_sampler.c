/* sampler, validation: which tokens a step gets. The text is 0, 1, 2, ... in uint16, so that
 * each token equals its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "data_support.h"

#define T 4

/* Returns the starts of the next `count` samples; checks that each is T consecutive tokens with their targets. */
static void starts(int64_t *out, dt_sampler *sampler, int64_t first, int64_t count)
{
    int32_t inputs[T], targets[T];

    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(dt_sampler_fill(sampler, (void *[]){inputs, targets}, first + i, 1, NULL),
                         DT_OK);
        out[i] = inputs[0];
        for (int t = 0; t < T; t++) {
            assert_int_equal(inputs[t], inputs[0] + t);
            assert_int_equal(targets[t], inputs[t] + 1);
        }
    }
}

static void test_an_epoch_has_every_sequence_once(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);
    bool seen[200] = {false};
    int64_t at[100], in_order = 0;
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 7, NULL), DT_OK);
    starts(at, &sampler, 0, 1);
    assert_in_range(sampler.order_count, 99, 100);
    starts(at, &sampler, 0, sampler.order_count);
    for (int64_t i = 0; i < sampler.order_count; i++) {
        int64_t place = (at[i] - sampler.shift) / T;

        assert_int_equal(at[i], sampler.shift + place * T);
        assert_false(seen[place]);
        seen[place] = true;
        in_order += i > 0 && at[i] > at[i - 1];
    }
    assert_in_range(in_order, 30, 70); /* shuffled */
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_epochs_and_seeds_differ_in_order(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 1000, 0);
    int64_t first[50], next_epoch[50], other_seed[50];
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 0, NULL), DT_OK);
    starts(first, &sampler, 0, 50);
    assert_int_equal(dt_sampler_seek(&sampler, 1, 0, NULL), DT_OK);
    starts(next_epoch, &sampler, 0, 50);
    dt_sampler_release(&sampler);
    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 1, NULL), DT_OK);
    starts(other_seed, &sampler, 0, 50);
    dt_sampler_release(&sampler);
    assert_memory_not_equal(first, next_epoch, sizeof(first));
    assert_memory_not_equal(first, other_seed, sizeof(first));
    dt_dataset_close(dataset);
}

static void test_every_shift_below_a_sequence_comes_up(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 1000, 0);
    bool seen[T] = {false};
    int64_t at;
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 0, NULL), DT_OK);
    for (int64_t epoch = 0; epoch < 32; epoch++) {
        assert_int_equal(dt_sampler_seek(&sampler, epoch, 0, NULL), DT_OK);
        starts(&at, &sampler, 0, 1);
        assert_in_range(sampler.shift, 0, T - 1);
        seen[sampler.shift] = true;
    }
    for (int i = 0; i < T; i++)
        assert_true(seen[i]);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* Steps of 6 samples, drawn as 1, 2 and 3 ranks would; together they must be the same. */
static void test_the_samples_of_a_step_do_not_depend_on_the_ranks(void **state)
{
    dt_dataset *dataset =
        data_count_up(*state, 4 * 10 + 1, 0); /* 9 or 10 an epoch: steps cross epochs */
    int64_t alone[20][6], shared[20][6];

    for (int ranks = 1; ranks <= 3; ranks++) {
        for (int rank = 0; rank < ranks; rank++) {
            dt_sampler sampler;

            assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
            for (int step = 0; step < 20; step++) {
                int64_t(*into)[6] = ranks == 1 ? alone : shared;

                starts(&into[step][rank * 6 / ranks], &sampler, rank * 6 / ranks, 6 / ranks);
                assert_int_equal(dt_sampler_advance(&sampler, 6, NULL), DT_OK);
            }
            dt_sampler_release(&sampler);
        }
        if (ranks > 1)
            assert_memory_equal(alone, shared, sizeof(alone));
    }
    dt_dataset_close(dataset);
}

static void test_a_seek_continues_where_another_run_stopped(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);
    int64_t wanted[6], got[6];
    dt_sampler first, second;

    assert_int_equal(dt_sampler_init(&first, dataset, T, 3, NULL), DT_OK);
    for (int step = 0; step < 25; step++) {
        assert_int_equal(dt_sampler_init(&second, dataset, T, 3, NULL), DT_OK);
        assert_int_equal(dt_sampler_seek(&second, first.epoch, first.sample, NULL), DT_OK);
        starts(wanted, &first, 0, 6);
        starts(got, &second, 0, 6);
        assert_memory_equal(wanted, got, sizeof(wanted));
        dt_sampler_release(&second);
        assert_int_equal(dt_sampler_advance(&first, 6, NULL), DT_OK);
        assert_true(first.sample < 10);
    }
    assert_true(first.epoch >= 14);
    dt_sampler_release(&first);
    dt_dataset_close(dataset);
}

static void test_a_step_may_hold_several_epochs(void **state)
{
    dt_dataset *dataset = data_count_up(*state, T + 1, 0); /* one sequence, too short for a shift */
    int32_t inputs[5 * T], targets[5 * T];
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    assert_int_equal(dt_sampler_fill(&sampler, (void *[]){inputs, targets}, 0, 5, NULL), DT_OK);
    for (int i = 0; i < 5 * T; i++) {
        assert_int_equal(inputs[i], i % T);
        assert_int_equal(targets[i], i % T + 1);
    }
    assert_int_equal(dt_sampler_advance(&sampler, 5, NULL), DT_OK);
    assert_int_equal(sampler.epoch, 5);
    assert_int_equal(sampler.sample, 0);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* 9 or 10 sequences an epoch, and steps of 4: two steps each. */
static void test_drop_leaves_out_incomplete_steps(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);
    int64_t at[4], seen_epochs = 0;
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_DROP, 4, NULL), DT_OK);
    for (int64_t step = 0; step < 20; step++) {
        assert_int_equal(sampler.epoch, step / 2);
        assert_int_equal(sampler.sample, step % 2 * 4);
        starts(at, &sampler, 0, 4);
        assert_int_equal(sampler.order_epoch, sampler.epoch); /* none was of the next epoch */
        assert_int_equal(dt_sampler_advance(&sampler, 4, NULL), DT_OK);
        seen_epochs += sampler.sample == 0;
    }
    assert_int_equal(seen_epochs, 10);
    /* The position was saved with another number of ranks: the rest of the epoch is shorter than a step. */
    assert_int_equal(dt_sampler_seek(&sampler, 5, 8, NULL), DT_OK);
    assert_int_equal(sampler.epoch, 6);
    assert_int_equal(sampler.sample, 0);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_drop_of_everything_is_reported_with_numbers(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);
    dt_error err = DT_ERROR_INIT;
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_DROP, 9, NULL), DT_OK);
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_DROP, 10, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "an epoch has 9 sequences of 4 tokens, fewer than the 10"));
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_WRAP, 10, NULL), DT_OK);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_the_smallest_data_have_one_step_an_epoch(void **state)
{
    dt_dataset *dataset = data_count_up(*state, T + 3, 0);
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    assert_int_equal(dt_sampler_set_tail(&sampler, DT_TAIL_DROP, 1, NULL), DT_OK);
    assert_int_equal(dt_sampler_epoch_samples(&sampler), 1);
    assert_int_equal(dt_sampler_epoch_steps(&sampler, 7, 1), 7);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* Compares with counting step by step, for steps that divide an epoch and others. */
static void test_the_steps_of_epochs_are_those_that_a_run_takes(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);

    for (int tail = DT_TAIL_WRAP; tail <= DT_TAIL_DROP; tail++)
        for (int64_t samples = 1; samples <= 9; samples++) {
            int64_t steps = 0;
            dt_sampler sampler;

            assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
            assert_int_equal(dt_sampler_set_tail(&sampler, (dt_tail_kind)tail, samples, NULL),
                             DT_OK);
            for (int64_t epochs = 0; epochs < 12; epochs++) {
                while (sampler.epoch < epochs) {
                    assert_in_range(dt_sampler_epoch_samples(&sampler), 9, 10);
                    assert_int_equal(dt_sampler_valid_targets(&sampler, 0, samples), samples * T);
                    assert_int_equal(dt_sampler_advance(&sampler, samples, NULL), DT_OK);
                    steps++;
                }
                assert_int_equal(dt_sampler_epoch_steps(&sampler, epochs, samples), steps);
            }
            dt_sampler_release(&sampler);
        }
    dt_dataset_close(dataset);
}

static void test_a_position_of_other_data_is_refused(void **state)
{
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);
    dt_error err = DT_ERROR_INIT;
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 3, NULL), DT_OK);
    assert_int_equal(dt_sampler_seek(&sampler, 2, 11, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "no sample 11 in epoch 2"));
    assert_int_equal(dt_sampler_seek(&sampler, -1, 0, NULL), DT_ERR_RECIPE);
    assert_int_equal(dt_sampler_seek(&sampler, 0, -1, NULL), DT_ERR_RECIPE);
    assert_int_equal(dt_sampler_seek(&sampler, (int64_t)1 << 40, 0, NULL), DT_ERR_RECIPE);
    dt_sampler_release(&sampler);
    assert_int_equal(dt_sampler_init(&sampler, dataset, 41, 3, &err), DT_ERR_RECIPE);
    dt_dataset_close(dataset);
}

static void test_the_order_is_the_one_of_earlier_versions(void **state)
{
    /* From a second implementation of philox.h and the shuffle, in another language. Changing them
     * breaks the resume of every checkpoint that exists. */
    static const int64_t wanted[] = {32, 28, 4, 24, 36, 12, 20, 16, 0, 8};
    dt_dataset *dataset = data_count_up(*state, 4 * 10 + 1, 0);
    int64_t at[10];
    dt_sampler sampler;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 42, NULL), DT_OK);
    starts(at, &sampler, 0, 10);
    assert_int_equal(sampler.order_count, 10);
    assert_memory_equal(at, wanted, sizeof(wanted));
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_validation_masks_what_the_last_window_lacks(void **state)
{
    data_folder *folder = *state;
    dt_dataset *dataset = data_count_up(folder, 100, 0.1);
    int32_t inputs[T], targets[T];

    /* tokens 90 .. 99: 9 inputs with a target, in windows of 4, 4 and 1 */
    assert_int_equal(dt_dataset_valid_tokens(dataset), 10);
    assert_int_equal(dt_validation_count(dataset, T), 3);
    assert_int_equal(dt_validation_fill(dataset, T, 1, (void *[]){inputs, targets}, 0, NULL),
                     DT_OK);
    assert_int_equal(inputs[0], 94);
    assert_int_equal(targets[3], 98);
    assert_int_equal(dt_validation_fill(dataset, T, 2, (void *[]){inputs, targets}, 0, NULL),
                     DT_OK);
    assert_int_equal(inputs[0], 98);
    assert_int_equal(targets[0], 99);
    for (int t = 1; t < T; t++) {
        assert_int_equal(inputs[t], 0);
        assert_int_equal(targets[t], -1);
    }
    assert_int_equal(dt_validation_count(dataset, 9), 1);
    assert_int_equal(dt_validation_count(dataset, 8), 2);
    dt_dataset_close(dataset);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_an_epoch_has_every_sequence_once),
        IN_FOLDER(test_epochs_and_seeds_differ_in_order),
        IN_FOLDER(test_every_shift_below_a_sequence_comes_up),
        IN_FOLDER(test_the_samples_of_a_step_do_not_depend_on_the_ranks),
        IN_FOLDER(test_a_seek_continues_where_another_run_stopped),
        IN_FOLDER(test_a_step_may_hold_several_epochs),
        IN_FOLDER(test_drop_leaves_out_incomplete_steps),
        IN_FOLDER(test_drop_of_everything_is_reported_with_numbers),
        IN_FOLDER(test_the_smallest_data_have_one_step_an_epoch),
        IN_FOLDER(test_the_steps_of_epochs_are_those_that_a_run_takes),
        IN_FOLDER(test_a_position_of_other_data_is_refused),
        IN_FOLDER(test_the_order_is_the_one_of_earlier_versions),
        IN_FOLDER(test_validation_masks_what_the_last_window_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
