/* Activations that are computed again: the same bits, less memory, and no work that is not needed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/decoder/decoder.h"
#include "tests/unit/model_harness.h"

#include "base/banned.h"

static const dt_recompute_kind kinds[] = {DT_RECOMPUTE_NONE, DT_RECOMPUTE_SELECTIVE,
                                          DT_RECOMPUTE_FULL};
static const char *const kind_names[] = {"none", "selective", "full"};

/* Every kind of dropout, and everything that a config can ask for. */
static dt_model_config rich_config(dt_dtype dtype)
{
    dt_model_config config = harness_config();

    config.decoder.layers = 3;
    config.decoder.dropout = 0.1;
    config.decoder.attention_dropout = 0.2;
    config.gpt2.activation = DT_ACTIVATION_GELU;
    config.gpt2.positions = DT_POSITIONS_SINUSOIDAL;
    config.gpt2.scale_embedding = config.decoder.own_lm_head = true;
    config.dtype = dtype;
    return config;
}

static void open_filled(harness *h, const dt_model_config *config)
{
    harness_open(h, config);
    harness_init(h, 5);
    harness_fill_batch(h, 9);
}

/* Gradients of two micro-steps, the second of another shape; the loss of both in *loss. */
static float *grads_of(harness *h, double *loss, int64_t *elems)
{
    dt_batch second = harness_batch(h, 0, 3);

    second.micro_step++;
    *loss = harness_pass(h, &h->batch, 0.125) + harness_pass(h, &second, 0.125);
    return harness_copy_grads(h, elems);
}

static void expect_same_bits(dt_model_config config, const char *what)
{
    float *expected = NULL;
    double expected_loss = 0;

    for (size_t k = 0; k < 3; k++) {
        int64_t elems;
        double loss;
        float *grads;
        harness h;

        config.recompute = kinds[k];
        open_filled(&h, &config);
        grads = grads_of(&h, &loss, &elems);
        if (!expected) {
            expected = grads;
            expected_loss = loss;
        } else {
            if (memcmp(&loss, &expected_loss, sizeof loss) != 0)
                fail_msg("%s, %s: loss %.17g, without recomputation %.17g", what, kind_names[k],
                         loss, expected_loss);
            if (memcmp(grads, expected, (size_t)elems * sizeof *grads) != 0)
                fail_msg("%s, %s: other gradients, by %.3g", what, kind_names[k],
                         relative_norm(grads, expected, elems));
            free(grads);
        }
        harness_close(&h);
    }
    free(expected);
}

static void test_recomputation_gives_the_same_bits_in_every_type(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        dt_model_config config = rich_config(dtypes[d]);

        expect_same_bits(config, dt_dtype_name(dtypes[d]));
        config.decoder.layers = 1;
        expect_same_bits(config, "one block");
        config.gpt2.ffn = 2 * config.decoder.embed;
        expect_same_bits(config, "a narrow perceptron");
        config.gpt2.ffn = 6 * config.decoder.embed;
        expect_same_bits(config, "a wide perceptron");
    }
}

static void test_recomputation_gives_the_same_bits_with_one_dropout_or_none(void **state)
{
    dt_model_config config = harness_config();

    expect_same_bits(config, "no dropout");
    config.decoder.dropout = 0.1;
    expect_same_bits(config, "dropout of the stream");
    config.decoder.dropout = 0;
    config.decoder.attention_dropout = 0.1;
    expect_same_bits(config, "dropout of attention");
}

/* Weights are good between before_unit and after_unit only, as where fsdp gathers them. */
typedef struct visitor {
    harness *h;
    void *weights[4];
    bool open[4];
} visitor;

static dt_status bring(void *self, int unit, bool backward, dt_error *err)
{
    visitor *v = self;

    v->open[unit] = true;
    v->h->model->weights[unit] = v->weights[unit];
    return DT_OK;
}

static dt_status take_away(void *self, int unit, bool backward, dt_error *err)
{
    visitor *v = self;

    assert_true(v->open[unit]);
    v->open[unit] = false;
    v->h->model->weights[unit] = NULL; /* a view of it is a bug that the model asserts */
    return DT_OK;
}

static void test_recomputation_needs_weights_only_where_the_hooks_bring_them(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        dt_model_config config = rich_config(DT_F32);
        visitor v = {0};
        dt_model_hooks hooks = {.self = &v, .before_unit = bring, .after_unit = take_away};
        harness h;

        config.recompute = kinds[k];
        open_filled(&h, &config);
        v.h = &h;
        memcpy(v.weights, h.model->weights, sizeof v.weights);
        for (int u = 0; u < 4; u++)
            h.model->weights[u] = NULL;
        h.model->hooks = &hooks;
        harness_pass(&h, &h.batch, 1);
        memcpy(h.model->weights, v.weights, sizeof v.weights);
        harness_close(&h);
    }
}

/* How often the expensive ops and the cheap ones ran. */
static struct {
    int products, attentions, norms, gelus;
} counted;

static dt_status count_product(dt_device *device, dt_tensor *y, const dt_tensor *x,
                               const dt_tensor *w, const dt_tensor *bias, dt_error *err)
{
    counted.products++;
    return dt_ops_cpu.matmul_forward(device, y, x, w, bias, err);
}

static dt_status count_attention(dt_device *device, dt_tensor *out, dt_tensor *lse, const dt_qkv *x,
                                 const dt_attention_args *args, dt_error *err)
{
    counted.attentions++;
    return dt_ops_cpu.attention_forward(device, out, lse, x, args, err);
}

static dt_status count_norm(dt_device *device, dt_tensor *y, dt_tensor *mean, dt_tensor *rstd,
                            const dt_tensor *x, const dt_tensor *w, const dt_tensor *b, double eps,
                            dt_error *err)
{
    counted.norms++;
    return dt_ops_cpu.layernorm_forward(device, y, mean, rstd, x, w, b, eps, err);
}

static dt_status count_gelu(dt_device *device, dt_tensor *y, const dt_tensor *x,
                            dt_activation_kind kind, dt_error *err)
{
    counted.gelus++;
    return dt_ops_cpu.activation_forward(device, y, x, kind, err);
}

/* Three blocks of four products, and the head; GELU always runs twice. full: two blocks again, less
 * the product behind GELU: nothing has written over the last block's. */
static void test_only_what_is_said_runs_twice(void **state)
{
    static const struct {
        int products, attentions, norms, gelus;
    } expected[] = {{13, 3, 7, 6}, {13, 3, 13, 6}, {19, 5, 17, 6}};

    for (size_t k = 0; k < 3; k++) {
        dt_model_config config = rich_config(DT_F32);
        dt_ops counting;
        harness h;

        config.recompute = kinds[k];
        open_filled(&h, &config);
        counting = *h.device.ops;
        counting.matmul_forward = count_product;
        counting.attention_forward = count_attention;
        counting.layernorm_forward = count_norm;
        counting.activation_forward = count_gelu;
        h.device.ops = &counting;
        memset(&counted, 0, sizeof counted);
        harness_pass(&h, &h.batch, 1);
        assert_int_equal(counted.products, expected[k].products);
        assert_int_equal(counted.attentions, expected[k].attentions);
        assert_int_equal(counted.norms, expected[k].norms);
        assert_int_equal(counted.gelus, expected[k].gelus);
        harness_close(&h);
    }
}

static void test_the_arena_is_used_to_the_last_byte(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        dt_model_config config = rich_config(DT_F32); /* in bf16 a pass without backward, whose */
        harness h;                                    /* logits are fp32, may take more */

        config.recompute = kinds[k];
        open_filled(&h, &config);
        harness_pass(&h, &h.batch, 1);
        assert_int_equal(harness_state(&h)->arena.used_bytes, h.model->activation_bytes);
        assert_int_equal(h.model->activation_bytes, dt_model_activation_bytes(&config));
        harness_close(&h);
    }
}

/* GPT-2 124M, 4 x 1024 tokens, bf16: every size is a multiple of 64, so the sum has no rounding.
 * Beside the blocks 3 C (embedding; final norm, then the stream's gradient; a narrow gradient), 3
 * statistics and 667 rows of logits, which are more than the blocks' 5 C of scratch. */
static void test_activation_bytes_are_what_the_header_says(void **state)
{
    int64_t C = 768, L = 12, H = 12, N = 4 * 1024, row = 50304 * 2, rows = (64 << 20) / row;
    int64_t beside = N * (3 * C * 2 + 3 * 4) + rows * row;
    int64_t expected[] = {
        beside + N * L * (12 * C * 2 + (4 + H) * 4),
        beside + N * L * (10 * C * 2 + H * 4) + N * 4 * 4,
        beside + N * L * C * 2 + N * (9 * C * 2 + (4 + H) * 4),
    };
    dt_model_config config = {.decoder.layers = L,
                              .decoder.heads = H,
                              .decoder.embed = C,
                              .decoder.vocab = 50257,
                              .decoder.vocab_padded = 50304,
                              .decoder.context = 1024,
                              .batch = 4,
                              .tokens = 1024,
                              .dtype = DT_BF16};

    for (size_t k = 0; k < 3; k++) {
        config.recompute = kinds[k];
        assert_int_equal(dt_model_activation_bytes(&config), (expected[k] + 63) / 64 * 64);
        print_message("%s: %.0f MB\n", kind_names[k], (double)expected[k] / 1e6);
    }
    config.inference = true; /* keeps nothing, whatever is asked for */
    assert_true(dt_model_activation_bytes(&config) < (size_t)expected[0] / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputation_gives_the_same_bits_in_every_type),
        cmocka_unit_test(test_recomputation_gives_the_same_bits_with_one_dropout_or_none),
        cmocka_unit_test(test_recomputation_needs_weights_only_where_the_hooks_bring_them),
        cmocka_unit_test(test_only_what_is_said_runs_twice),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
        cmocka_unit_test(test_activation_bytes_are_what_the_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
