/* weights: a folder that transformers saved (tests/golden/make_huggingface_fixture.py) gives the logits
 * that transformers compute; every slice is the whole's; what does not fit is named. */
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
#include "recipes/fields.h"
#include "recipes/huggingface.h"
#include "recipes/values.h"
#include "tests/golden/safetensors.h"
#include "tests/unit/model_harness.h"

#include "base/banned.h"

#define FOLDER "tests/golden/huggingface/"

enum { VOCAB = 61, CONTEXT = 16, BATCH = 2, TOKENS = 13 };

/* The recipe that config.json makes. */
static dt_recipe recipe_of(const char *folder, dt_arena *arena)
{
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    json_t *config = NULL;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.batch.tokens = CONTEXT;
    recipe.batch.sequences = BATCH;
    if (dt_weights_find(&files, folder, arena, &err) != DT_OK ||
        dt_weights_describe(&config, &files, &err) != DT_OK ||
        dt_huggingface_read(&model, config, files.description, arena, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_field_set_text(&recipe, dt_field_find("model.kind"), model.kind, &err),
                     DT_OK);
    for (size_t i = 0; i < model.count; i++)
        assert_int_equal(dt_field_set_text(&recipe, dt_field_find(model.values[i].path),
                                           model.values[i].text, &err),
                         DT_OK);
    json_decref(config);
    return recipe;
}

static dt_recipe recipe_of_fixture(void)
{
    dt_arena arena;
    dt_recipe recipe;

    dt_arena_init(&arena, 0);
    recipe = recipe_of(FOLDER "gpt2", &arena);
    dt_arena_release(&arena); /* it has no text of its own */
    return recipe;
}

static void find(dt_weights_files *out, const char *folder, dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;

    if (dt_weights_find(out, folder, arena, &err) != DT_OK)
        fail_msg("%s", err.message);
}

static dt_weights *open_folder(dt_weights_files *files, const char *folder, const dt_model *model,
                               dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights *weights;

    find(files, folder, arena);
    if (dt_weights_open(&weights, files, &err) != DT_OK ||
        dt_weights_check(weights, model, &err) != DT_OK)
        fail_msg("%s", err.message);
    return weights;
}

static void open_model_of(harness *out, const char *folder, dt_arena *arena)
{
    dt_recipe recipe = recipe_of(folder, arena);
    dt_model_config config;

    dt_model_config_make(&config, &recipe, VOCAB);
    config.tokens = TOKENS;
    harness_open(out, &config);
}

static void open_model(harness *out)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    open_model_of(out, FOLDER "gpt2", &arena);
    dt_arena_release(&arena);
}

static dt_slice whole_of(const dt_param *param)
{
    dt_box box = dt_box_whole(param->dim, param->ndim);

    return dt_slice_whole(&box);
}

static void read_slice(float *out, dt_weights *weights, const dt_model *model, int param,
                       const dt_slice *slice)
{
    dt_error err = DT_ERROR_INIT;

    if (dt_weights_read(out, weights, model, param, slice, &err) != DT_OK)
        fail_msg("%s", err.message);
}

static void fill(harness *h, dt_weights *weights)
{
    for (int i = 0; i < h->model->param_count; i++) {
        dt_slice whole = whole_of(&h->model->params[i]);

        read_slice(harness_value(h, i), weights, h->model, i, &whole);
    }
    harness_values_changed(h);
}

/* fp32: a sum of some dozens of products errs by 1e-7 of its size. */
static void expect_logits(const char *name)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    fixture expect;
    dt_arena arena;
    harness h;
    dt_weights *weights;
    const float *theirs;
    float *ours = calloc(BATCH * TOKENS * VOCAB, sizeof(*ours));
    char folder[96], path[96];

    dt_arena_init(&arena, 0);
    snprintf(folder, sizeof(folder), FOLDER "%s", name);
    snprintf(path, sizeof(path), FOLDER "%s_expect.safetensors", name);
    open_model_of(&h, folder, &arena);
    weights = open_folder(&files, folder, h.model, &arena);
    fill(&h, weights);
    fixture_open(&expect, path);
    memcpy(h.tokens, fixture_get(&expect, "tokens", "I32", BATCH * TOKENS),
           sizeof(int32_t) * BATCH * TOKENS);
    theirs = fixture_get(&expect, "logits", "F32", BATCH * TOKENS * VOCAB);
    if (dt_model_logits(h.model, &h.batch, TOKENS, ours, &err) != DT_OK)
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < BATCH * TOKENS * VOCAB; i++)
        if (!(fabsf(ours[i] - theirs[i]) <= 1e-5F * (1 + fabsf(theirs[i]))))
            fail_msg("%s: logit %lld is %g, and theirs %g", name, (long long)i, (double)ours[i],
                     (double)theirs[i]);
    fixture_close(&expect);
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
    free(ours);
}

static void test_logits_are_those_of_transformers(void **state)
{
    expect_logits("gpt2");
    expect_logits("llama");
    expect_logits("qwen2");
    expect_logits("qwen3");
}

/* Cut anywhere: ends of rows, within one, padding. */
static void test_every_slice_is_of_the_whole(void **state)
{
    dt_weights_files files;
    dt_weights *weights;
    dt_arena arena;
    harness h;

    dt_arena_init(&arena, 0);
    open_model(&h);
    weights = open_folder(&files, FOLDER "gpt2", h.model, &arena);
    fill(&h, weights);
    for (int i = 0; i < h.model->param_count; i++) {
        const dt_param *param = &h.model->params[i];
        const float *values = harness_value(&h, i);
        float *part = malloc((size_t)param->elems * sizeof(*part));

        for (int64_t length = 1; length <= param->elems; length = length * 5 + 2)
            for (int64_t first = 0; first + length <= param->elems; first += length + 3) {
                dt_slice slice = whole_of(param);

                slice.start_elems = first;
                slice.elems = length;
                read_slice(part, weights, h.model, i, &slice);
                assert_memory_equal(part, values + first, (size_t)length * sizeof(*part));
            }
        free(part);
    }
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
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
    weights = open_folder(&files, FOLDER "gpt2", h.model, &arena);
    fill(&h, weights);
    wte = harness_param(&h, "wte.weight");
    assert_int_equal(h.model->params[wte].dim[0], 128);
    for (int64_t i = VOCAB * 12; i < 128 * 12; i++)
        assert_true(harness_value(&h, wte)[i] == 0);
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
}

/* bf16 keeps 8 bits: what is read differs from the fp32 by half of its last one at most. */
static void test_bf16_in_several_files_is_the_same_model(void **state)
{
    dt_weights_files files, halves;
    dt_weights *weights, *rounded;
    dt_arena arena;
    harness h;

    dt_arena_init(&arena, 0);
    open_model(&h);
    weights = open_folder(&files, FOLDER "gpt2", h.model, &arena);
    rounded = open_folder(&halves, FOLDER "gpt2_parts", h.model, &arena);
    assert_true(halves.files.count > 1);
    fill(&h, weights);
    for (int i = 0; i < h.model->param_count; i++) {
        dt_slice whole = whole_of(&h.model->params[i]);
        float *part = malloc((size_t)whole.elems * sizeof(*part));

        read_slice(part, rounded, h.model, i, &whole);
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

/* --- what does not fit */

static void expect_refusal(const dt_recipe *recipe, const char *said)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    find(&files, FOLDER "gpt2", &arena);
    assert_int_equal(dt_weights_fit(&files, recipe, 0, &err), DT_ERR_RECIPE);
    if (strstr(err.message, said) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
    dt_arena_release(&arena);
}

static void test_what_does_not_fit_is_named(void **state)
{
    dt_recipe recipe = recipe_of_fixture();

    recipe.model.embed = 24;
    expect_refusal(&recipe, "'transformer.wte.weight' is 61 x 12 there, and 61 x 24 in this model");
    recipe = recipe_of_fixture();
    recipe.model.vocab = 62;
    expect_refusal(&recipe, "'transformer.wte.weight' is 61 x 12 there, and 62 x 12 in this model");
    recipe = recipe_of_fixture();
    recipe.model.layers = 3;
    expect_refusal(&recipe, "has no tensor 'transformer.h.2.ln_1.weight'");
    recipe = recipe_of_fixture();
    recipe.model.layers = 1;
    expect_refusal(&recipe, "has a tensor 'transformer.h.1.");
    recipe = recipe_of_fixture();
    recipe.batch.tokens = 17;
    expect_refusal(&recipe, "'transformer.wpe.weight' is 16 x 12 there, and 17 x 12 in this model");
    recipe = recipe_of_fixture();
    recipe.model.tied = false;
    expect_refusal(&recipe, "has no tensor 'lm_head.weight'");
}

/* Positions are taken from the front. */
static void test_fewer_positions_are_the_first(void **state)
{
    dt_recipe recipe = recipe_of_fixture();
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    recipe.batch.tokens = 8;
    find(&files, FOLDER "gpt2", &arena);
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
