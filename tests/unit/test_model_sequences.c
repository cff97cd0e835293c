/* Sequences that grow side by side have the same logits as each alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model_harness.h"

#define SEQUENCES 11 /* more than the rows that a product takes at once */
#define STEPS     9
#define LONGEST   (2 + 3 * (SEQUENCES - 1) + STEPS)

static dt_model_config gpt2(dt_dtype dtype)
{
    dt_model_config config = harness_config();

    config.dtype = dtype;
    return config;
}

static dt_model_config llama(dt_dtype dtype)
{
    dt_model_config config = {
        .kind = DT_MODEL_LLAMA,
        .dtype = dtype,
        .decoder =
            {.layers = 3, .heads = 6, .embed = 21, .vocab = 61, .vocab_padded = 128, .context = 70},
        .llama = {.kv_heads = 2,
                  .head_width = 10,
                  .ffn = 19,
                  .norm_eps = 1e-5,
                  .qkv_bias = true,
                  .rope_theta = 10000,
                  .rope_factor = 1}};
    return config;
}

static void open_sequences(harness *h, dt_model_config config)
{
    config.batch = 1;
    config.tokens = config.decoder.context = 70;
    config.inference = config.incremental = true;
    config.sequences = SEQUENCES;
    config.kept = LONGEST;
    harness_open(h, &config);
    harness_init(h, 5);
    harness_fill_batch(h, 9);
}

/* Sequence k is the batch's tokens from k on. Returns how many are read before it grows with the others. */
static int64_t read_first(int64_t k)
{
    return 2 + 3 * k;
}

static float *logits_of(const harness *h, int64_t rows)
{
    float *logits = calloc((size_t)(rows * harness_vocab(h)), sizeof *logits);

    assert_non_null(logits);
    return logits;
}

static void start(harness *h, int64_t slot, int64_t k, float *logits)
{
    dt_tensor tokens = dt_tensor_2d(h->tokens + k, DT_I32, 1, read_first(k));
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(dt_model_replace(h->model, slot, DT_SEQUENCE_EMPTY, &err), DT_OK);
    assert_int_equal(dt_model_extended(h->model, slot), 0);
    assert_int_equal(dt_model_extend(h->model, slot, &tokens, logits, &err), DT_OK);
    assert_int_equal(dt_model_extended(h->model, slot), read_first(k));
}

/* Adds the token i after those that were read to the sequences ks[0 .. count), each in its slot. */
static void step(harness *h, const int64_t *ks, int64_t count, int64_t i, float *logits)
{
    dt_error err = DT_ERROR_INIT;
    int32_t newest[SEQUENCES];
    dt_tensor tokens = dt_tensor_2d(newest, DT_I32, count, 1);

    for (int64_t s = 0; s < count; s++)
        newest[s] = h->tokens[ks[s] + read_first(ks[s]) + i];
    assert_int_equal(dt_model_extend_each(h->model, &tokens, logits, &err), DT_OK);
    for (int64_t s = 0; s < count; s++)
        assert_int_equal(dt_model_extended(h->model, s), read_first(ks[s]) + i + 1);
}

static void expect_whole(harness *h, int64_t k, int64_t i, const float *logits, double bound)
{
    dt_batch all = {.inputs[0] = dt_tensor_2d(h->tokens + k, DT_I32, 1, read_first(k) + i + 1)};
    float *whole = logits_of(h, 1);
    dt_error err = DT_ERROR_INIT;
    double error;

    assert_int_equal(dt_model_logits(h->model, &all, 1, whole, &err), DT_OK);
    error = relative_norm(logits, whole, harness_vocab(h));
    if (!(error <= bound))
        fail_msg("%s, sequence %lld, step %lld: relative error %.3g",
                 dt_dtype_name(h->model->config.dtype), (long long)k, (long long)i, error);
    free(whole);
}

/* Extends all sequences at once, and compares with whole passes. Returns the last logits of each. */
static float *expect_each(dt_model_config config, double bound)
{
    int64_t ks[SEQUENCES], V;
    float *logits;
    harness h;

    open_sequences(&h, config);
    V = harness_vocab(&h);
    logits = logits_of(&h, SEQUENCES);
    for (int64_t k = 0; k < SEQUENCES; k++) {
        ks[k] = k;
        start(&h, k, k, logits);
    }
    for (int64_t i = 0; i < STEPS; i++) {
        step(&h, ks, SEQUENCES, i, logits);
        for (int64_t k = 0; k < SEQUENCES; k++)
            expect_whole(&h, k, i, logits + k * V, bound);
    }
    harness_close(&h);
    return logits;
}

static void expect_bits_of_one_alone(dt_model_config config, const float *together)
{
    float *logits;
    harness h;

    open_sequences(&h, config);
    logits = logits_of(&h, 1);
    for (int64_t k = 0; k < SEQUENCES; k++) {
        start(&h, 0, k, logits);
        for (int64_t i = 0; i < STEPS; i++)
            step(&h, &k, 1, i, logits);
        assert_memory_equal(logits, together + k * harness_vocab(&h),
                            (size_t)harness_vocab(&h) * sizeof *logits);
    }
    free(logits);
    harness_close(&h);
}

static void expect(dt_model_config config, double bound)
{
    float *together = expect_each(config, bound);

    expect_bits_of_one_alone(config, together);
    free(together);
}

static void test_each_gives_the_logits_of_its_whole_pass(void **state)
{
    dt_model_config normed = llama(DT_F32), sinusoidal = gpt2(DT_F32);

    expect(gpt2(DT_F32), 1e-5);
    sinusoidal.gpt2.positions = DT_POSITIONS_SINUSOIDAL;
    sinusoidal.decoder.own_lm_head = sinusoidal.gpt2.scale_embedding = true;
    expect(sinusoidal, 1e-5);
    expect(llama(DT_F32), 1e-5);
    normed.llama.qk_norm = normed.decoder.own_lm_head = true;
    expect(normed, 1e-5);
}

static void test_narrow_types_give_the_same(void **state)
{
    expect(gpt2(DT_BF16), 1e-2);
    expect(gpt2(DT_F16), 3e-3);
    expect(llama(DT_BF16), 2e-2);
    expect(llama(DT_F16), 3e-3);
}

/* A sequence that ended gives its slot to the last one; the last is copied over the first. */
static void test_a_sequence_takes_the_place_of_another(void **state)
{
    const dt_model_config configs[] = {gpt2(DT_F32), llama(DT_F32)};

    for (size_t c = 0; c < sizeof configs / sizeof configs[0]; c++) {
        static const int64_t before[] = {4, 1, 7}, after[] = {7, 1};
        dt_error err = DT_ERROR_INIT;
        float *logits;
        harness h;

        open_sequences(&h, configs[c]);
        logits = logits_of(&h, 3);
        for (int64_t s = 0; s < 3; s++)
            start(&h, s, before[s], logits);
        step(&h, before, 3, 0, logits);
        assert_int_equal(dt_model_replace(h.model, 0, 2, &err), DT_OK);
        assert_int_equal(dt_model_replace(h.model, 1, 1, &err), DT_OK);
        step(&h, after, 2, 1, logits);
        for (int64_t s = 0; s < 2; s++)
            expect_whole(&h, after[s], 1, logits + s * harness_vocab(&h), 1e-5);
        free(logits);
        harness_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_gives_the_logits_of_its_whole_pass),
        cmocka_unit_test(test_narrow_types_give_the_same),
        cmocka_unit_test(test_a_sequence_takes_the_place_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
