/* weights: .bin files of llm.c and llama2.c (tests/golden/make_bin_fixture.py) give the models
 * that they were made from; a header with wrong sizes, another version or a truncated file is
 * refused with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "recipes/architecture/published.h"
#include "tests/unit/weights_harness.h"

#define BIN         "tests/golden/bin/"
#define HUGGINGFACE "tests/golden/huggingface/"

static void test_llmc_is_the_model_that_it_was_made_of(void **state)
{
    weights_expect_same(BIN "llmc.bin", HUGGINGFACE "gpt2");
    weights_expect_same(BIN "llmc_bf16.bin", HUGGINGFACE "gpt2_parts");
    weights_expect_logits(BIN "llmc.bin", HUGGINGFACE "gpt2_expect.safetensors");
}

static void test_llama2c_computes_what_its_own_positions_do(void **state)
{
    weights_expect_logits(BIN "llama2c_v0.bin", BIN "llama2c_v0_expect.safetensors");
    weights_expect_logits(BIN "llama2c_v1.bin", BIN "llama2c_v1_expect.safetensors");
}

static void test_every_slice_is_of_the_whole(void **state)
{
    weights_expect_slices(BIN "llmc_bf16.bin");
    weights_expect_slices(BIN "llama2c_v0.bin");
    weights_expect_slices(BIN "llama2c_v1.bin");
}

static void test_a_bin_has_its_dimensions(void **state)
{
    dt_arena arena;
    dt_recipe recipe;

    dt_arena_init(&arena, 0);
    recipe = weights_recipe(BIN "llama2c_v0.bin", &arena);
    assert_int_equal(recipe.model.kv_heads, 1);
    assert_int_equal(recipe.model.ffn, 20);
    assert_false(recipe.model.tied);
    assert_true(recipe.model.norm_eps == 1e-5);
    recipe = weights_recipe(BIN "llama2c_v1.bin", &arena);
    assert_true(recipe.model.tied);
    recipe = weights_recipe(BIN "llmc.bin", &arena);
    assert_int_equal(recipe.model.vocab, WEIGHTS_VOCAB);
    assert_int_equal(recipe.batch.tokens, WEIGHTS_CONTEXT);
    dt_arena_release(&arena);
}

static void test_a_shape_that_differs_is_named(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    dt_arena arena;
    dt_recipe recipe;

    dt_arena_init(&arena, 0);
    recipe = weights_recipe(BIN "llama2c_v0.bin", &arena);
    recipe.model.ffn = 24;
    weights_find(&files, BIN "llama2c_v0.bin", &arena);
    assert_int_equal(dt_weights_fit(&files, &recipe, 0, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(
        err.message,
        "'model.layers.0.mlp.gate_proj.weight' is 20 x 12 in the file and 24 x 12 in this model"));
    dt_arena_release(&arena);
}

/* --- headers */

typedef struct file_start {
    unsigned char bytes[DT_WEIGHTS_BIN_HEADER_BYTES];
    size_t length;
    int64_t file_bytes;
} file_start;

static file_start start_of(const char *path)
{
    file_start out = {0};
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    out.length = fread(out.bytes, 1, sizeof(out.bytes), file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    out.file_bytes = ftell(file);
    fclose(file);
    return out;
}

static void expect_refusal(const file_start *start, const char *said)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_bin bin;

    assert_int_equal(
        dt_weights_bin_parse(&bin, start->bytes, start->length, start->file_bytes, "m.bin", &err),
        DT_ERR_RECIPE);
    if (strstr(err.message, said) == NULL || strstr(err.message, "'m.bin'") == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
    assert_null(bin.tensors);
}

/* Changes the number at byte `at` of the file, which must then be refused. */
static void expect_number_refused(const char *path, size_t at, int32_t number, const char *said)
{
    file_start start = start_of(path);

    memcpy(start.bytes + at, &number, sizeof(number));
    expect_refusal(&start, said);
}

static void test_a_header_that_lies_is_refused(void **state)
{
    expect_number_refused(BIN "llmc.bin", 4, 1, "version 1 of llm.c's models is not supported");
    for (size_t at = 8; at < 32; at += 4) {
        expect_number_refused(BIN "llmc.bin", at, 0, "a dimension of 0");
        expect_number_refused(BIN "llmc.bin", at, -5, "a dimension of -5");
        if (at != 12 && at != 20) /* V within Vp, and heads, do not affect sizes */
            expect_number_refused(BIN "llmc.bin", at, INT32_MAX, "cut off or damaged");
    }
    expect_number_refused(BIN "llmc.bin", 12, 65, "a vocabulary of 65 in 64 rows");
    expect_number_refused(BIN "llmc.bin", 4, 5, "cut off or damaged"); /* fp32 marked as bf16 */
    expect_number_refused(BIN "llama2c_v1.bin", 4, 3,
                          "version 3 of llama2.c's models is not supported");
    expect_number_refused(BIN "llama2c_v1.bin", 4, 2, "rounded to 8 bits");
    expect_number_refused(BIN "llama2c_v1.bin", 36, 0, "cut off or damaged"); /* a separate head */
    expect_number_refused(BIN "llama2c_v1.bin", 36, 7, "damaged at byte 36");
    for (size_t at = 8; at < 36; at += 4)
        expect_number_refused(BIN "llama2c_v1.bin", at, at < 32 ? INT32_MAX : -1, "damaged");
    for (size_t at = 0; at < 28; at += 4)
        expect_number_refused(BIN "llama2c_v0.bin", at, 0, "is not a .bin file of llm.c");
    expect_number_refused(BIN "llama2c_v0.bin", 20, 61,
                          "cut off or damaged"); /* the head is left over */
    expect_number_refused(BIN "llama2c_v0.bin", 12, 5, "is not a .bin file of llm.c");
    expect_number_refused(BIN "llama2c_v1.bin", 20, 5, "5 heads for a width of 12");
}

static void test_a_file_that_is_cut_off_is_refused(void **state)
{
    static const char *const paths[] = {BIN "llmc.bin", BIN "llmc_bf16.bin", BIN "llama2c_v0.bin",
                                        BIN "llama2c_v1.bin"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        file_start whole = start_of(paths[i]), start;

        for (int64_t bytes = 0; bytes < whole.file_bytes; bytes += bytes < 1100 ? 1 : 97) {
            start = whole;
            start.file_bytes = bytes;
            if (bytes < (int64_t)start.length)
                start.length = (size_t)bytes;
            expect_refusal(&start, "");
        }
        start = whole;
        start.file_bytes++;
        expect_refusal(&start, "cut off or damaged");
    }
}

static void test_files_that_are_not_models_are_distinguished(void **state)
{
    expect_number_refused(BIN "llmc.bin", 0, 20240520, "contains tokens, not weights");
    expect_number_refused(BIN "llmc.bin", 0, 20240803, "is a Llama 3 of llm.c");
    expect_number_refused(BIN "llmc.bin", 0, 0x02034b50, "is not a .bin file of llm.c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llmc_is_the_model_that_it_was_made_of),
        cmocka_unit_test(test_llama2c_computes_what_its_own_positions_do),
        cmocka_unit_test(test_every_slice_is_of_the_whole),
        cmocka_unit_test(test_a_bin_has_its_dimensions),
        cmocka_unit_test(test_a_shape_that_differs_is_named),
        cmocka_unit_test(test_a_header_that_lies_is_refused),
        cmocka_unit_test(test_a_file_that_is_cut_off_is_refused),
        cmocka_unit_test(test_files_that_are_not_models_are_distinguished),
    };

    return cmocka_run_group_tests_name("weights: bin", tests, NULL, NULL);
}
