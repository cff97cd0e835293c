/* Rows of .npy files: the same numbers as in .csv; and each invalid header, with its message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data_support.h"

#define ROWS    5
#define COLUMNS 3
#define HEADER  "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }"

/* Writes version 1.0, or 2.0 with a length of four bytes; pads the text as NumPy does. */
static void write_npy(const data_folder *folder, const char *name, int version, const char *header,
                      const void *numbers, size_t numbers_bytes)
{
    unsigned char bytes[1024] = "\x93NUMPY";
    size_t start = version > 1 ? 12 : 10, text = strlen(header);
    size_t padded = (start + text + 1 + 63) / 64 * 64 - start;

    assert_true(start + padded + numbers_bytes <= sizeof(bytes));
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)(padded & 0xff);
    bytes[9] = (unsigned char)(padded >> 8);
    memset(bytes + start, ' ', padded);
    memcpy(bytes + start, header, text);
    bytes[start + padded - 1] = '\n';
    if (numbers_bytes > 0)
        memcpy(bytes + start + padded, numbers, numbers_bytes);
    data_write(folder, name, bytes, start + padded + numbers_bytes);
}

static void write_table(const data_folder *folder, int version, const char *descr,
                        const void *numbers, size_t number_bytes)
{
    char header[128];

    snprintf(header, sizeof(header), HEADER, descr, ROWS, COLUMNS);
    write_npy(folder, "rows.npy", version, header, numbers, ROWS * COLUMNS * number_bytes);
}

static void expect_rows_of(data_folder *folder, dt_loss_kind loss, const char *file)
{
    folder->recipe.model.kind = DT_MODEL_MLP;
    folder->recipe.model.inputs = 2;
    folder->recipe.model.outputs = loss == DT_LOSS_CROSS_ENTROPY ? 3 : 1;
    folder->recipe.model.loss = loss;
    folder->recipe.batch.tokens = 1;
    folder->recipe.data.split = 0.2;
    folder->recipe.data.train.count = 0;
    data_train(folder, file);
}

typedef struct sample {
    float values[COLUMNS - 1];
    unsigned char target[4]; /* class or number */
} sample;

/* Reads the rows of an epoch, then those of validation. */
static void read_all(sample out[ROWS], const data_folder *folder)
{
    dt_dataset *dataset = data_open(folder);
    dt_error err = DT_ERROR_INIT;
    dt_sampler sampler;

    assert_int_equal(dt_dataset_train_tokens(dataset), ROWS - 1);
    assert_int_equal(dt_sampler_init(&sampler, dataset, 1, 7, &err), DT_OK);
    for (int i = 0; i < ROWS - 1; i++)
        assert_int_equal(
            dt_sampler_fill(&sampler, (void *[]){out[i].values, out[i].target}, i, 1, &err), DT_OK);
    assert_int_equal(dt_validation_fill(dataset, 1, 0,
                                        (void *[]){out[ROWS - 1].values, out[ROWS - 1].target}, 0,
                                        &err),
                     DT_OK);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

/* Compares rows.csv with rows.npy. */
static void expect_the_same_rows(data_folder *folder, dt_loss_kind loss)
{
    sample text[ROWS], binary[ROWS];

    expect_rows_of(folder, loss, "rows.csv");
    read_all(text, folder);
    expect_rows_of(folder, loss, "rows.npy");
    read_all(binary, folder);
    assert_memory_equal(text, binary, sizeof(text));
}

#define THIRD (1.0 / 3)
static const double fractions[ROWS][COLUMNS] = {{0.1, -2.5, 1e-3},
                                                {1e-30, 3e38, -0.0},
                                                {16777217, THIRD, 5e-324},
                                                {1e-40, 2, 3},
                                                {7, -8, 9.75}};

static void test_fractions_are_those_of_csv_to_the_bit(void **state)
{
    data_folder *folder = *state;
    char csv[1024] = "";
    float singles[ROWS][COLUMNS];

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "%.17g%s", fractions[i][k],
                     k + 1 < COLUMNS ? "," : "\n");
    data_write_text(folder, "rows.csv", csv);
    write_table(folder, 1, "<f8", fractions, 8);
    expect_the_same_rows(folder, DT_LOSS_SQUARED_ERROR);
    write_table(folder, 2, "<f8", fractions, 8);
    expect_the_same_rows(folder, DT_LOSS_SQUARED_ERROR);

    csv[0] = '\0';
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++) {
            singles[i][k] = (float)fractions[i][k];
            snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "%.9g%s", (double)singles[i][k],
                     k + 1 < COLUMNS ? "," : "\n");
        }
    data_write_text(folder, "rows.csv", csv);
    write_table(folder, 1, "<f4", singles, 4);
    expect_the_same_rows(folder, DT_LOSS_SQUARED_ERROR);
}

static void test_whole_numbers_of_every_width_are_those_of_csv(void **state)
{
    static const char *const types[] = {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"};
    data_folder *folder = *state;

    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        int bytes = types[t][2] - '0';
        uint64_t top = (uint64_t)1 << (8 * bytes - 1); /* the minimum of i, more than half of u */
        unsigned char numbers[ROWS * COLUMNS * 8];
        char csv[1024] = "";

        for (int i = 0; i < ROWS * COLUMNS; i++) {
            uint64_t value = i % COLUMNS == 2 ? (uint64_t)i % 3 : top + (uint64_t)(i * 7);
            uint64_t shown = types[t][1] == 'i' && value >= top ? 2 * top - value : value;

            memcpy(numbers + i * bytes, &value, (size_t)bytes); /* the low bytes */
            snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "%s%llu%s",
                     shown != value || (types[t][1] == 'i' && value == top) ? "-" : "",
                     (unsigned long long)shown, i % COLUMNS == 2 ? "\n" : ",");
        }
        data_write_text(folder, "rows.csv", csv);
        write_table(folder, 1, types[t], numbers, (size_t)bytes);
        expect_the_same_rows(folder, DT_LOSS_CROSS_ENTROPY);
    }
}

static void test_files_of_both_kinds_are_joined(void **state)
{
    static const float two[] = {1, 2, 0, 3, 4, 1};
    data_folder *folder = *state;
    dt_dataset *dataset;

    write_npy(folder, "a.npy", 1, "{'shape': (2, 3), \"fortran_order\":False,'descr':'<f4'}", two,
              sizeof(two));
    data_write_text(folder, "b.csv", "x,y,class\n5,6,2\n7,8,0\n9,9,1\n");
    expect_rows_of(folder, DT_LOSS_CROSS_ENTROPY, "*.*");
    dataset = data_open(folder);
    assert_int_equal(dt_dataset_train_tokens(dataset) + dt_dataset_valid_tokens(dataset), 5);
    dt_dataset_close(dataset);
}

static void test_each_header_that_is_not_taken_is_named(void **state)
{
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }",
         "unsupported number type '<f2' ('descr' in the header;"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "save array.astype('<f4')"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "type '|O'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }",
         "byte 20: expected one type of number, as '<f4'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
         "is in column-major order ('fortran_order' in the header); save "
         "numpy.ascontiguousarray(array)"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }",
         "byte 44: expected True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }",
         "1 dimension ('shape' in the header); expected two"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "0 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", "at least 3 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4), }",
         "at least 3 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
         "'%s/rows.npy': 2 columns; expected 3: 2 of model.inputs and 1 of the target"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }",
         "says 3 x 3 numbers of 4 bytes, and 24 bytes follow; the file is cut off"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }",
         "says 1 x 3 numbers of 4 bytes, and 24 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 3), }",
         "numbers of 4 bytes, and 24 bytes follow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }",
         "expected a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", "expected a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }",
         "expected the shape, as (rows, columns)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
         "expected 'descr', 'fortran_order' and 'shape', each once"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3), }", "each once"},
        {"{'descr': '<f4', 'shape': (2, 3), }",
         "expected 'descr', 'fortran_order' and 'shape' before its end"},
        {"{'descr': '<f4' 'shape': (2, 3), }", "expected ',' or '}'"},
        {"{'descr' '<f4', 'shape': (2, 3), }", "expected ':'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x",
         "expected spaces and a line break at the end"},
        {"{'descr': '<f4", "expected one type of number"},
        {"['descr']", "byte 10: expected '{' in the header of a .npy file"},
        {"", "expected '{'"},
    };
    static const float numbers[] = {1, 2, 0, 3, 4, 1};
    data_folder *folder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char message[256];

        write_npy(folder, "rows.npy", 1, cases[i].header, numbers, sizeof(numbers));
        expect_rows_of(folder, DT_LOSS_CROSS_ENTROPY, "rows.npy");
        snprintf(message, sizeof(message), "%s", cases[i].message);
        if (strstr(cases[i].message, "%s") != NULL)
            snprintf(message, sizeof(message), "'%s%s", folder->path,
                     strstr(cases[i].message, "%s") + 2);
        data_refuse(folder, message, NULL);
    }
}

static void test_bytes_before_the_header_are_read_strictly(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } cases[] = {
        {"1,2,0\n", 6, "is not a .npy file: its first bytes differ"},
        {"\x93NUMPY", 6, "ends within its header, at byte 6: it is cut off"},
        {"\x93NUMPY\1\0\x76", 9, "ends within its header, at byte 9"},
        {"\x93NUMPY\1\0\x76\0{", 11, "ends within its header, at byte 11"},
        {"\x93NUMPY\2\0\x76\0\0", 11, "ends within its header, at byte 11"},
        {"\x93NUMPY\2\0\xff\xff\xff\xff{", 13, "ends within its header, at byte 13"},
        {"\x93NUMPY\4\0\x76\0{", 11, "unsupported .npy version 4.0"},
        {"\x93NUMPY\1\1\x76\0{", 11, "unsupported .npy version 1.1"},
        {"\x93NUMPY\1\0\0\0", 10, "byte 10: expected '{'"},
    };
    data_folder *folder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        data_write(folder, "rows.npy", cases[i].bytes, cases[i].length);
        expect_rows_of(folder, DT_LOSS_CROSS_ENTROPY, "rows.npy");
        data_refuse(folder, cases[i].message, NULL);
    }
}

static void test_invalid_numbers_are_named_by_their_element(void **state)
{
    static const struct {
        float number;
        int at;
        const char *message;
    } cases[] = {
        {NAN, 4, "rows.npy', element [1, 1]: 'nan' is not a number"},
        {-INFINITY, 0, "element [0, 0]: '-inf' is not a number"},
        {3, 5, "element [1, 2]: '3' is not a class: expected an integer from 0 to 2"},
        {0.5F, 2, "element [0, 2]: '0.5' is not a class"},
        {-1, 5, "element [1, 2]: '-1' is not a class"},
    };
    static const double too_large[] = {1, 1e39, 0};
    data_folder *folder = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float numbers[] = {1, 2, 0, 3, 4, 1};

        numbers[cases[i].at] = cases[i].number;
        write_npy(folder, "rows.npy", 1,
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers,
                  sizeof(numbers));
        expect_rows_of(folder, DT_LOSS_CROSS_ENTROPY, "rows.npy");
        data_refuse(folder, cases[i].message, NULL);
    }
    write_npy(folder, "rows.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }",
              too_large, sizeof(too_large));
    data_refuse(folder, "element [0, 1]", "is not a number", NULL);
    write_npy(folder, "rows.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }",
              NULL, 0);
    data_refuse(folder, "has no row", NULL);
}

/* Sparse files that are too large to be read by the check. */
static void test_headers_of_large_files_give_the_number_of_rows(void **state)
{
    const long long rows = 30000000;
    data_folder *folder = *state;
    dt_error err = DT_ERROR_INIT;
    dt_dataset_facts facts;
    char header[128];

    snprintf(header, sizeof(header),
             "{'descr': '|u1', 'fortran_order': False, 'shape': (%lld, 3), }", rows);
    write_npy(folder, "rows.npy", 1, header, NULL, 0);
    expect_rows_of(folder, DT_LOSS_CROSS_ENTROPY, "rows.npy");
    assert_int_equal(truncate(folder->recipe.data.train.items[0], 128 + 3 * rows), 0);
    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, &err), DT_OK);
    assert_int_equal(facts.train_tokens, rows / 10 * 8);

    assert_int_equal(truncate(folder->recipe.data.train.items[0], 127 + 3 * rows), 0);
    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "the file is cut off"));
}

#define FOLDER_TEST(test) \
    cmocka_unit_test_setup_teardown(test, data_folder_make, data_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_fractions_are_those_of_csv_to_the_bit),
        FOLDER_TEST(test_whole_numbers_of_every_width_are_those_of_csv),
        FOLDER_TEST(test_files_of_both_kinds_are_joined),
        FOLDER_TEST(test_each_header_that_is_not_taken_is_named),
        FOLDER_TEST(test_bytes_before_the_header_are_read_strictly),
        FOLDER_TEST(test_invalid_numbers_are_named_by_their_element),
        FOLDER_TEST(test_headers_of_large_files_give_the_number_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
