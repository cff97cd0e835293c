/* Rows of .csv files: what is read, what is refused and where, and how rows are drawn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data_support.h"

static void fill(data_folder *folder, const char *csv, dt_loss_kind loss)
{
    folder->recipe.model.kind = DT_MODEL_MLP;
    folder->recipe.model.inputs = 2;
    folder->recipe.model.outputs = 3;
    folder->recipe.model.loss = loss;
    folder->recipe.batch.tokens = 1;
    folder->recipe.data.split = 0.25;
    data_write_text(folder, "rows.csv", csv);
    folder->recipe.data.train.count = 0;
    data_train(folder, "rows.csv");
}

static void test_rows_are_read_past_a_header_and_split(void **state)
{
    data_folder *folder = *state;
    float values[2];
    int32_t class = 0;
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;

    fill(folder, "x,y,class\r\n1, 2.5,0\r\n-3e1,4,2\r\n\r\n5,6,1\r\n7,8,0", DT_LOSS_CROSS_ENTROPY);
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &err), DT_OK);
    assert_int_equal(dt_dataset_train_tokens(dataset), 3);
    assert_int_equal(dt_dataset_valid_tokens(dataset), 1);
    assert_int_equal(dt_validation_count(dataset, 1), 1);
    assert_int_equal(dt_validation_fill(dataset, 1, 0, (void *[]){values, &class}, 0, &err), DT_OK);
    assert_true(values[0] == 7 && values[1] == 8 && class == 0);
    assert_int_equal(dt_validation_fill(dataset, 1, -1, (void *[]){values, &class}, 0, &err),
                     DT_OK);
    assert_int_equal(class, -1);
    dt_dataset_close(dataset);
}

static void test_a_byte_order_mark_is_not_a_header(void **state)
{
    data_folder *folder = *state;
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;

    fill(folder,
         "\xef\xbb\xbf"
         "1,2,0\n3,4,1\n5,6,2\n7,8,0\n",
         DT_LOSS_CROSS_ENTROPY);
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &err), DT_OK);
    assert_int_equal(dt_dataset_train_tokens(dataset) + dt_dataset_valid_tokens(dataset), 4);
    dt_dataset_close(dataset);
}

static void test_an_epoch_draws_every_row_once(void **state)
{
    data_folder *folder = *state;
    float values[3][2], numbers[3][3];
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;
    dt_sampler sampler;

    fill(folder, "1,0,1,2,3\n2,0,4,5,6\n3,0,7,8,9\n4,0,1,1,1\n", DT_LOSS_SQUARED_ERROR);
    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &err), DT_OK);
    assert_int_equal(dt_sampler_init(&sampler, dataset, 1, 7, &err), DT_OK);
    assert_int_equal(dt_sampler_valid_targets(&sampler, 0, 3), 9);
    for (int epoch = 0; epoch < 5; epoch++) {
        unsigned seen = 0;

        assert_int_equal(dt_sampler_epoch_samples(&sampler), 3);
        assert_int_equal(dt_sampler_fill(&sampler, (void *[]){values, numbers}, 0, 3, &err), DT_OK);
        for (int i = 0; i < 3; i++) {
            seen |= 1u << (int)values[i][0];
            assert_true(numbers[i][0] == 3 * values[i][0] - 2); /* of the same row */
        }
        assert_int_equal(seen, 2 + 4 + 8);
        assert_int_equal(dt_sampler_advance(&sampler, 3, &err), DT_OK);
    }
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

static void test_invalid_rows_are_refused_at_their_line_and_column(void **state)
{
    static const struct {
        const char *csv, *message;
    } cases[] = {
        {"1,2,0\n3,x,1\n", "line 2, column 2: 'x' is not a number"},
        {"1,2,0\n3,,1\n", "line 2, column 2: '' is not a number"},
        {"1,2,0\nnan,2,1\n", "line 2, column 1: 'nan' is not a number"},
        {"1,2,0\n1e60,2,1\n", "line 2, column 1: '1e60' is not a number"},
        {"1,2,0\n1."
         "0000000000000000000000000000000000000000000000000000000000000000e5,2,1\n",
         "00...' is not a number"},
        {"1,2,0\n3,4,3\n", "line 2, column 3: '3' is not a class"},
        {"1,2,0\n3,4,-1\n", "line 2, column 3: '-1' is not a class"},
        {"1,2,0\n3,4,0.5\n", "line 2, column 3: '0.5' is not a class"},
        {"a,b,c\n1,2\n", "line 2: 2 columns; expected 3"},
        {"1,2,0\n1,2,0,4\n", "line 2: 4 columns; expected 3"},
        {"a,b,c\n", "has no row"},
    };
    data_folder *folder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_dataset *dataset;

        fill(folder, cases[i].csv, DT_LOSS_CROSS_ENTROPY);
        assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &err), DT_ERR_RECIPE);
        if (strstr(err.message, cases[i].message) == NULL)
            fail_msg("'%s' does not hold '%s'", err.message, cases[i].message);
        dt_error_clear(&err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_are_read_past_a_header_and_split,
                                        data_folder_make, data_folder_remove),
        cmocka_unit_test_setup_teardown(test_a_byte_order_mark_is_not_a_header, data_folder_make,
                                        data_folder_remove),
        cmocka_unit_test_setup_teardown(test_an_epoch_draws_every_row_once, data_folder_make,
                                        data_folder_remove),
        cmocka_unit_test_setup_teardown(test_invalid_rows_are_refused_at_their_line_and_column,
                                        data_folder_make, data_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
