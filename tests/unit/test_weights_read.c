/* weights: a folder saved by transformers (tests/golden/make_huggingface_fixture.py) gives the
 * logits that transformers compute; every slice equals that part of the whole; mismatches are
 * named. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/weights/weights.h"
#include "tests/unit/weights_harness.h"

#define FOLDER "tests/golden/huggingface/"

static dt_recipe recipe_of_fixture(void)
{
    dt_arena arena;
    dt_recipe recipe;

    dt_arena_init(&arena, 0);
    recipe = weights_recipe(FOLDER "gpt2", &arena);
    dt_arena_release(&arena); /* it does not own text */
    return recipe;
}

static void open_model(harness *out)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    weights_open_model(out, FOLDER "gpt2", &arena);
    dt_arena_release(&arena);
}

static void test_logits_are_those_of_transformers(void **state)
{
    weights_expect_logits(FOLDER "gpt2", FOLDER "gpt2_expect.safetensors");
    weights_expect_logits(FOLDER "llama", FOLDER "llama_expect.safetensors");
    weights_expect_logits(FOLDER "qwen2", FOLDER "qwen2_expect.safetensors");
    weights_expect_logits(FOLDER "qwen3", FOLDER "qwen3_expect.safetensors");
}

static void test_every_slice_is_of_the_whole(void **state)
{
    weights_expect_slices(FOLDER "gpt2");
}

static void test_rows_of_padding_are_zero(void **state)
{
    dt_weights_files files;
    dt_weights *weights;
    dt_arena arena;
    harness h;
    int wte;

    dt_arena_init(&arena, 0);
    open_model(&h);
    weights = weights_open_checked(&files, FOLDER "gpt2", h.model, &arena);
    weights_fill(&h, weights);
    wte = harness_param(&h, "wte.weight");
    assert_int_equal(h.model->params[wte].dim[0], 128);
    for (int64_t i = WEIGHTS_VOCAB * 12; i < 128 * 12; i++)
        assert_true(harness_value(&h, wte)[i] == 0);
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
}

/* bf16 keeps 8 bits: values differ from fp32 by at most half of the last bit. */
static void test_bf16_in_several_files_is_the_same_model(void **state)
{
    dt_weights_files files, halves;
    dt_weights *weights, *rounded;
    dt_arena arena;
    harness h;

    dt_arena_init(&arena, 0);
    open_model(&h);
    weights = weights_open_checked(&files, FOLDER "gpt2", h.model, &arena);
    rounded = weights_open_checked(&halves, FOLDER "gpt2_parts", h.model, &arena);
    assert_true(halves.files.count > 1);
    weights_fill(&h, weights);
    for (int i = 0; i < h.model->param_count; i++) {
        dt_slice whole = weights_whole(&h.model->params[i]);
        float *part = malloc((size_t)whole.elems * sizeof(*part));

        weights_read_slice(part, rounded, h.model, i, &whole);
        for (int64_t k = 0; k < whole.elems; k++)
            assert_true(fabsf(part[k] - harness_value(&h, i)[k]) <=
                        fabsf(harness_value(&h, i)[k]) / 256);
        free(part);
    }
    dt_weights_close(weights);
    dt_weights_close(rounded);
    harness_close(&h);
    dt_arena_release(&arena);
}

/* --- mismatches */

static void expect_refusal(const dt_recipe *recipe, const char *said)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    weights_find(&files, FOLDER "gpt2", &arena);
    assert_int_equal(dt_weights_fit(&files, recipe, 0, &err), DT_ERR_RECIPE);
    if (strstr(err.message, said) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
    dt_arena_release(&arena);
}

static void test_what_does_not_fit_is_named(void **state)
{
    dt_recipe recipe = recipe_of_fixture();

    recipe.model.embed = 24;
    expect_refusal(&recipe,
                   "'transformer.wte.weight' is 61 x 12 in the file and 61 x 24 in this model");
    recipe = recipe_of_fixture();
    recipe.model.vocab = 62;
    expect_refusal(&recipe,
                   "'transformer.wte.weight' is 61 x 12 in the file and 62 x 12 in this model");
    recipe = recipe_of_fixture();
    recipe.model.layers = 3;
    expect_refusal(&recipe, "has no tensor 'transformer.h.2.ln_1.weight'");
    recipe = recipe_of_fixture();
    recipe.model.layers = 1;
    expect_refusal(&recipe, "has a tensor 'transformer.h.1.");
    recipe = recipe_of_fixture();
    recipe.batch.tokens = 17;
    expect_refusal(&recipe,
                   "'transformer.wpe.weight' is 16 x 12 in the file and 17 x 12 in this model");
    recipe = recipe_of_fixture();
    recipe.model.tied = false;
    expect_refusal(&recipe, "has no tensor 'lm_head.weight'");
}

/* Fewer positions are the first ones. */
static void test_fewer_positions_are_the_first(void **state)
{
    dt_recipe recipe = recipe_of_fixture();
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    recipe.batch.tokens = 8;
    weights_find(&files, FOLDER "gpt2", &arena);
    assert_int_equal(dt_weights_fit(&files, &recipe, 0, &err), DT_OK);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_are_those_of_transformers),
        cmocka_unit_test(test_every_slice_is_of_the_whole),
        cmocka_unit_test(test_rows_of_padding_are_zero),
        cmocka_unit_test(test_bf16_in_several_files_is_the_same_model),
        cmocka_unit_test(test_what_does_not_fit_is_named),
        cmocka_unit_test(test_fewer_positions_are_the_first),
    };

    return cmocka_run_group_tests_name("weights: read", tests, NULL, NULL);
}
