/* Recomputed activations: the same bits, less memory, and no unnecessary work. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/decoder/decoder.h"
#include "tests/unit/model_harness.h"

/* Every kind of dropout, and every other option of a config. */
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

static void test_recomputation_gives_the_same_bits_in_every_type(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        dt_model_config config = rich_config(dtypes[d]);

        harness_expect_same_bits(config, dt_dtype_name(dtypes[d]), NULL);
        config.decoder.layers = 1;
        harness_expect_same_bits(config, "one block", NULL);
        config.gpt2.ffn = 2 * config.decoder.embed;
        harness_expect_same_bits(config, "a narrow perceptron", NULL);
        config.gpt2.ffn = 6 * config.decoder.embed;
        harness_expect_same_bits(config, "a wide perceptron", NULL);
    }
}

static void test_recomputation_gives_the_same_bits_with_one_dropout_or_none(void **state)
{
    dt_model_config config = harness_config();

    harness_expect_same_bits(config, "no dropout", NULL);
    config.decoder.dropout = 0.1;
    harness_expect_same_bits(config, "dropout of the stream", NULL);
    config.decoder.dropout = 0;
    config.decoder.attention_dropout = 0.1;
    harness_expect_same_bits(config, "dropout of attention", NULL);
}

static void test_recomputation_needs_weights_only_where_the_hooks_bring_them(void **state)
{
    harness_expect_hooked_weights(rich_config(DT_F32));
}

/* Counts the expensive and the cheap ops. */
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

/* Three blocks of four products, and the head; GELU runs twice unless all is kept. full: two blocks run
 * again, without the product after GELU, since the last block's activations are still there. */
static void test_only_documented_ops_run_twice(void **state)
{
    static const struct {
        int products, attentions, norms, gelus;
    } expected[] = {{13, 3, 7, 3}, {13, 3, 7, 6}, {13, 3, 13, 6}, {19, 5, 17, 6}};

    for (size_t k = 0; k < HARNESS_RECOMPUTE_KINDS; k++) {
        dt_model_config config = rich_config(DT_F32);
        dt_ops counting;
        harness h;

        config.recompute = harness_recompute_kinds[k];
        harness_open_filled(&h, &config);
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
    /* Not bf16: its pass without backward may use more, since its logits are fp32. */
    harness_expect_full_arena(rich_config(DT_F32));
}

/* GPT-2 124M, 4 x 1024 tokens, bf16: every size is a multiple of 64, so that nothing is rounded.
 * Besides the blocks: 3 C (embedding; final norm, then the stream's gradient; a narrow
 * gradient), 3 statistics and 667 rows of logits, which are more than the 5 C of scratch of the
 * blocks. */
static void test_activation_bytes_are_as_in_the_header(void **state)
{
    int64_t C = 768, L = 12, H = 12, N = 4 * 1024, row = 50304 * 2, rows = (64 << 20) / row;
    int64_t beside = N * (3 * C * 2 + 3 * 4) + rows * row;
    int64_t quarter = (1024 - rows) * row; /* with all kept, a chunk has a quarter of the rows */
    int64_t expected[] = {
        beside + quarter + N * L * (16 * C * 2 + (4 + H) * 4),
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

    for (size_t k = 0; k < HARNESS_RECOMPUTE_KINDS; k++) {
        config.recompute = harness_recompute_kinds[k];
        assert_int_equal(dt_model_activation_bytes(&config), (expected[k] + 63) / 64 * 64);
        print_message("%d: %.0f MB\n", (int)k, (double)expected[k] / 1e6);
    }
    config.inference = true; /* keeps nothing, whatever is requested */
    assert_true(dt_model_activation_bytes(&config) < (size_t)expected[0] / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputation_gives_the_same_bits_in_every_type),
        cmocka_unit_test(test_recomputation_gives_the_same_bits_with_one_dropout_or_none),
        cmocka_unit_test(test_recomputation_needs_weights_only_where_the_hooks_bring_them),
        cmocka_unit_test(test_only_documented_ops_run_twice),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
        cmocka_unit_test(test_activation_bytes_are_as_in_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
