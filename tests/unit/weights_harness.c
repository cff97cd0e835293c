#include "tests/unit/weights_harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface.h"
#include "tests/golden/safetensors.h"

dt_recipe weights_recipe(const char *from, dt_arena *arena)
{
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    json_t *config = NULL;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.batch.tokens = WEIGHTS_CONTEXT;
    recipe.batch.sequences = WEIGHTS_BATCH;
    if (dt_weights_find(&files, from, arena, &err) != DT_OK ||
        dt_weights_describe(&config, &files, &err) != DT_OK ||
        dt_huggingface_read(&model, config, files.description, arena, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(dt_field_set_text(&recipe, dt_field_find("model.kind"), model.kind, &err),
                     DT_OK);
    for (size_t i = 0; i < model.count; i++)
        assert_int_equal(dt_huggingface_set(&recipe, dt_field_find(model.values[i].path),
                                            model.values[i].text, arena, &err),
                         DT_OK);
    json_decref(config);
    return recipe;
}

void weights_find(dt_weights_files *out, const char *from, dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;

    if (dt_weights_find(out, from, arena, &err) != DT_OK)
        fail_msg("%s", err.message);
}

dt_weights *weights_open_checked(dt_weights_files *files, const char *from, const dt_model *model,
                                 dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights *weights;

    weights_find(files, from, arena);
    if (dt_weights_open(&weights, files, &err) != DT_OK ||
        dt_weights_check(weights, model, &err) != DT_OK)
        fail_msg("%s", err.message);
    return weights;
}

void weights_open_model(harness *out, const char *from, dt_arena *arena)
{
    dt_recipe recipe = weights_recipe(from, arena);
    dt_model_config config;

    dt_model_config_make(&config, &recipe, WEIGHTS_VOCAB);
    config.tokens = WEIGHTS_TOKENS;
    harness_open(out, &config);
}

dt_slice weights_whole(const dt_param *param)
{
    dt_box box = dt_box_whole(param->dim, param->ndim);

    return dt_slice_whole(&box);
}

void weights_read_slice(float *out, dt_weights *weights, const dt_model *model, int param,
                        const dt_slice *slice)
{
    dt_error err = DT_ERROR_INIT;

    if (dt_weights_read(out, weights, model, param, slice, &err) != DT_OK)
        fail_msg("%s", err.message);
}

void weights_fill(harness *h, dt_weights *weights)
{
    for (int i = 0; i < h->model->param_count; i++) {
        dt_slice whole = weights_whole(&h->model->params[i]);

        weights_read_slice(harness_value(h, i), weights, h->model, i, &whole);
    }
    harness_values_changed(h);
}

/* fp32: a sum of some dozens of products has an error of 1e-7 of its size. */
void weights_expect_logits(const char *from, const char *path)
{
    dt_error err = DT_ERROR_INIT;
    dt_weights_files files;
    fixture expect;
    dt_arena arena;
    harness h;
    dt_weights *weights;
    const float *theirs;
    float *ours = calloc(WEIGHTS_BATCH * WEIGHTS_TOKENS * WEIGHTS_VOCAB, sizeof(*ours));

    dt_arena_init(&arena, 0);
    weights_open_model(&h, from, &arena);
    weights = weights_open_checked(&files, from, h.model, &arena);
    weights_fill(&h, weights);
    fixture_open(&expect, path);
    memcpy(h.tokens, fixture_get(&expect, "tokens", "I32", WEIGHTS_BATCH * WEIGHTS_TOKENS),
           sizeof(int32_t) * WEIGHTS_BATCH * WEIGHTS_TOKENS);
    theirs = fixture_get(&expect, "logits", "F32", WEIGHTS_BATCH * WEIGHTS_TOKENS * WEIGHTS_VOCAB);
    if (dt_model_logits(h.model, &h.batch, WEIGHTS_TOKENS, ours, &err) != DT_OK)
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < WEIGHTS_BATCH * WEIGHTS_TOKENS * WEIGHTS_VOCAB; i++)
        if (!(fabsf(ours[i] - theirs[i]) <= 1e-5F * (1 + fabsf(theirs[i]))))
            fail_msg("%s: logit %lld is %g, and theirs %g", from, (long long)i, (double)ours[i],
                     (double)theirs[i]);
    fixture_close(&expect);
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
    free(ours);
}

void weights_expect_slices(const char *from)
{
    dt_weights_files files;
    dt_weights *weights;
    dt_arena arena;
    harness h;

    dt_arena_init(&arena, 0);
    weights_open_model(&h, from, &arena);
    weights = weights_open_checked(&files, from, h.model, &arena);
    weights_fill(&h, weights);
    for (int i = 0; i < h.model->param_count; i++) {
        const dt_param *param = &h.model->params[i];
        const float *values = harness_value(&h, i);
        float *part = malloc((size_t)param->elems * sizeof(*part));

        for (int64_t length = 1; length <= param->elems; length = length * 5 + 2)
            for (int64_t first = 0; first + length <= param->elems; first += length + 3) {
                dt_slice slice = weights_whole(param);

                slice.start_elems = first;
                slice.elems = length;
                weights_read_slice(part, weights, h.model, i, &slice);
                assert_memory_equal(part, values + first, (size_t)length * sizeof(*part));
            }
        free(part);
    }
    dt_weights_close(weights);
    harness_close(&h);
    dt_arena_release(&arena);
}

void weights_expect_same(const char *from, const char *other)
{
    dt_weights_files files, others;
    dt_weights *weights, *theirs;
    dt_arena arena;
    harness h;

    dt_arena_init(&arena, 0);
    weights_open_model(&h, from, &arena);
    weights = weights_open_checked(&files, from, h.model, &arena);
    theirs = weights_open_checked(&others, other, h.model, &arena);
    weights_fill(&h, weights);
    for (int i = 0; i < h.model->param_count; i++) {
        dt_slice whole = weights_whole(&h.model->params[i]);
        float *part = malloc((size_t)whole.elems * sizeof(*part));

        weights_read_slice(part, theirs, h.model, i, &whole);
        assert_memory_equal(part, harness_value(&h, i), (size_t)whole.elems * sizeof(*part));
        free(part);
    }
    dt_weights_close(weights);
    dt_weights_close(theirs);
    harness_close(&h);
    dt_arena_release(&arena);
}
