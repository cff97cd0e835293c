/* Extending a sequence piece by piece gives the logits of a pass over the whole sequence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/model_harness.h"

static dt_model_config growing_config(dt_dtype dtype)
{
    dt_model_config config = harness_config();

    config.batch = 1;
    config.decoder.context = config.tokens = 70; /* attention works on blocks of 32 queries */
    config.dtype = dtype;
    config.inference = config.incremental = true;
    return config;
}

static void open_filled(harness *h, const dt_model_config *config)
{
    harness_open(h, config);
    harness_init(h, 5);
    harness_fill_batch(h, 9);
}

/* Adds the tokens `from` to `end`, and compares the logits with those of a whole pass, (T,V). */
static void extend(harness *h, int64_t from, int64_t end, const float *whole, double bound)
{
    int64_t V = h->model->config.decoder.vocab;
    dt_tensor tokens = dt_tensor_2d(h->tokens + from, DT_I32, 1, end - from);
    float *logits = calloc((size_t)V, sizeof *logits);
    dt_error err = DT_ERROR_INIT;
    double error;

    assert_int_equal(dt_model_extended(h->model, 0), from);
    assert_int_equal(dt_model_extend(h->model, 0, &tokens, logits, &err), DT_OK);
    error = relative_norm(logits, whole + (end - 1) * V, V);
    if (!(error <= bound))
        fail_msg("%s, tokens %lld to %lld: relative error %.3g",
                 dt_dtype_name(h->model->config.dtype), (long long)from, (long long)end, error);
    free(logits);
}

static void expect_growth(const dt_model_config *config, double bound)
{
    static const int64_t ends[] = {1, 2, 7, 8, 41, 42, 69, 70};
    float *whole = calloc((size_t)(config->tokens * config->decoder.vocab), sizeof *whole);
    dt_error err = DT_ERROR_INIT;
    int64_t from = 0;
    dt_batch all;
    harness h;

    open_filled(&h, config);
    all = h.batch;
    all.inputs[DT_DECODER_TARGETS].data = NULL;
    assert_int_equal(dt_model_logits(h.model, &all, config->tokens, whole, &err), DT_OK);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        extend(&h, from, ends[i], whole, bound);
        from = ends[i];
        if (i == 3) /* a pass in between does not change the sequence */
            assert_int_equal(dt_model_logits(h.model, &all, config->tokens, whole, &err), DT_OK);
    }
    free(whole);
    harness_close(&h);
}

/* Products of one row and of many rows sum in another order, so that the results are not equal to the bit. */
static void test_a_growing_sequence_gives_the_whole_ones_logits(void **state)
{
    dt_model_config config = growing_config(DT_F32);

    expect_growth(&config, 1e-5);
    config.gpt2.positions = DT_POSITIONS_SINUSOIDAL;
    config.decoder.own_lm_head = config.gpt2.scale_embedding = true;
    expect_growth(&config, 1e-5);
}

static void test_a_growing_sequence_works_in_narrow_types(void **state)
{
    dt_model_config config = growing_config(DT_BF16);

    expect_growth(&config, 1e-2);
    config.dtype = DT_F16;
    expect_growth(&config, 2e-3);
}

static void test_what_is_kept_is_in_the_bytes(void **state)
{
    dt_model_config config = growing_config(DT_F32);
    size_t with = dt_model_activation_bytes(&config);

    config.incremental = false;
    assert_int_equal(with - dt_model_activation_bytes(&config),
                     (2 * 70 * 3 * 24 * 4 + 63) / 64 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_growing_sequence_gives_the_whole_ones_logits),
        cmocka_unit_test(test_a_growing_sequence_works_in_narrow_types),
        cmocka_unit_test(test_what_is_kept_is_in_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
