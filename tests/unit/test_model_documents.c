/* Documents that share a sequence have the losses and gradients of each document alone (engine/data/stream.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/data/stream.h"
#include "tests/unit/model_harness.h"

#define END 3

static dt_model_config gpt2(dt_positions_kind positions)
{
    dt_model_config config = harness_config();

    config.gpt2.positions = positions;
    config.decoder.documents = true;
    return config;
}

static dt_model_config llama(void)
{
    dt_model_config config = harness_config();

    config.kind = DT_MODEL_LLAMA;
    config.decoder.heads = 4;
    config.decoder.documents = true;
    config.llama = (dt_llama_config){.kv_heads = 2,
                                     .head_width = 6,
                                     .ffn = 40,
                                     .norm_eps = 1e-5,
                                     .rope_theta = 10000,
                                     .rope_factor = 1};
    return config;
}

/* Cuts the batch into documents of 1 to 6 tokens, the last of which is END. */
static void cut_into_documents(const harness *h)
{
    const dt_model_config *config = &h->model->config;

    for (int64_t i = 0; i < config->batch * config->tokens; i++) {
        if (h->tokens[i] == END)
            h->tokens[i]++;
        if ((i * i + i / 7) % 5 == 0)
            h->tokens[i] = END;
    }
}

static void pack(dt_batch *out, const harness *h, int32_t *marks)
{
    const dt_model_config *config = &h->model->config;
    int64_t B = config->batch, T = config->tokens;

    for (int64_t b = 0; b < B; b++)
        dt_documents_mark(h->targets + b * T, marks + b * T, marks + (B + b) * T, h->tokens + b * T,
                          T, END);
    *out = h->batch;
    out->inputs[DT_DECODER_STARTS] = dt_tensor_2d(marks, DT_I32, B, T);
    out->inputs[DT_DECODER_POSITIONS] = dt_tensor_2d(marks + B * T, DT_I32, B, T);
}

/* Runs a separate pass for each document. */
static double pass_each(harness *h, const int32_t *starts, int64_t *documents)
{
    const dt_model_config *config = &h->model->config;
    int64_t T = config->tokens, end;
    double sum = 0;

    *documents = 0;
    for (int64_t b = 0; b < config->batch; b++)
        for (int64_t first = 0; first < T; first = end, ++*documents) {
            dt_batch one = h->batch;

            for (end = first + 1; end < T && starts[b * T + end] == first; end++)
                ;
            one.inputs[DT_DECODER_TOKENS] =
                dt_tensor_2d(h->tokens + b * T + first, DT_I32, 1, end - first);
            one.inputs[DT_DECODER_TARGETS] =
                dt_tensor_2d(h->targets + b * T + first, DT_I32, 1, end - first);
            sum += harness_pass(h, &one, 1);
        }
    return sum;
}

static void compare(const dt_model_config *config)
{
    int32_t *marks = calloc((size_t)(2 * config->batch * config->tokens), sizeof(*marks));
    int64_t documents, elems;
    float *packed, *each;
    double together, alone, whole;
    dt_batch batch;
    harness h;

    harness_open(&h, config);
    harness_init(&h, 5);
    harness_fill_batch(&h, 9);
    cut_into_documents(&h);
    pack(&batch, &h, marks);
    harness_zero_grads(&h);
    together = harness_pass(&h, &batch, 1);
    packed = harness_copy_grads(&h, &elems);
    harness_zero_grads(&h);
    alone = pass_each(&h, marks, &documents);
    each = harness_copy_grads(&h, &elems);
    assert_true(documents > 3 * config->batch);
    assert_true(fabs(together - alone) <= 1e-6 * fabs(alone));
    assert_true(relative_norm(packed, each, elems) < 1e-5);
    whole = harness_pass(&h, &h.batch, 1); /* as one document the result differs */
    assert_true(fabs(whole - alone) > 1e-5 * fabs(alone));
    free(packed);
    free(each);
    free(marks);
    harness_close(&h);
}

static void compare_all(dt_model_config config)
{
    for (config.recompute = DT_RECOMPUTE_NONE; config.recompute <= DT_RECOMPUTE_NOTHING;
         config.recompute++)
        compare(&config);
}

static void test_gpt2_with_learned_positions(void **state)
{
    compare_all(gpt2(DT_POSITIONS_LEARNED));
}

static void test_gpt2_with_sinusoidal_positions(void **state)
{
    compare_all(gpt2(DT_POSITIONS_SINUSOIDAL));
}

static void test_llama(void **state)
{
    compare_all(llama());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_with_learned_positions),
        cmocka_unit_test(test_gpt2_with_sinusoidal_positions),
        cmocka_unit_test(test_llama),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
