/* The Llama kind apart from its numbers (see test_model_golden.c): parameter table,
 * recomputation, memory, and growing sequences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/decoder/decoder.h"
#include "tests/unit/model_harness.h"

static dt_model_config plain(void)
{
    dt_model_config config = {
        .kind = DT_MODEL_LLAMA,
        .batch = 8,
        .tokens = 11,
        .dtype = DT_F32,
        .decoder =
            {.layers = 3, .heads = 4, .embed = 24, .vocab = 61, .vocab_padded = 128, .context = 16},
        .llama = {.kv_heads = 2,
                  .head_width = 6,
                  .ffn = 40,
                  .norm_eps = 1e-5,
                  .rope_theta = 10000,
                  .rope_factor = 1}};
    return config;
}

/* Every option of a config, in sizes that are multiples of nothing. */
static dt_model_config rich(dt_dtype dtype)
{
    dt_model_config config = plain();

    config.dtype = dtype;
    config.decoder.embed = 21;
    config.decoder.heads = 3;
    config.llama.kv_heads = 1;
    config.llama.head_width = 10;
    config.llama.ffn = 19;
    config.decoder.dropout = 0.1;
    config.decoder.attention_dropout = 0.2;
    config.llama.qkv_bias = config.llama.qk_norm = config.decoder.own_lm_head = true;
    config.llama.rope_scaling = DT_ROPE_LLAMA3;
    config.llama.rope_factor = 8;
    config.llama.rope_low_freq_factor = 1;
    config.llama.rope_high_freq_factor = 4;
    config.llama.rope_original_tokens = 16;
    return config;
}

/* --- parameter table */

static void test_the_table_has_the_names_of_transformers(void **state)
{
    static const char *const block[] = {"input_layernorm.weight",
                                        "self_attn.q_proj.weight",
                                        "self_attn.k_proj.weight",
                                        "self_attn.v_proj.weight",
                                        "self_attn.q_proj.bias",
                                        "self_attn.k_proj.bias",
                                        "self_attn.v_proj.bias",
                                        "self_attn.q_norm.weight",
                                        "self_attn.k_norm.weight",
                                        "self_attn.o_proj.weight",
                                        "post_attention_layernorm.weight",
                                        "mlp.gate_proj.weight",
                                        "mlp.up_proj.weight",
                                        "mlp.down_proj.weight"};
    dt_model_config config = rich(DT_F32);
    harness h;

    harness_open(&h, &config);
    assert_int_equal(h.model->param_count, 3 + 3 * 14);
    assert_string_equal(h.model->params[0].name, "model.embed_tokens.weight");
    assert_string_equal(h.model->params[1].name, "model.norm.weight");
    assert_string_equal(h.model->params[2].name, "lm_head.weight");
    for (int i = 0; i < 14; i++) {
        const dt_param *param = &h.model->params[h.model->units[2].first_param + i];

        assert_memory_equal(param->name, "model.layers.1.", 15);
        assert_string_equal(param->name + 15, block[i]);
        assert_int_equal(param->decay, param->ndim == 2);
    }
    harness_close(&h);
    config = plain();
    harness_open(&h, &config);
    assert_int_equal(h.model->param_count, 2 + 3 * 9);
    harness_close(&h);
}

/* Matrices of 21 columns and 10 or 30 rows; except joined ones, each begins at a multiple of 16. */
static void test_matrices_of_one_input_are_one_matrix(void **state)
{
    static const char *const joined[] = {"k_proj", "v_proj", "up_proj"};
    dt_model_config config = rich(DT_F32);
    harness h;

    harness_open(&h, &config);
    for (int u = 0; u < h.model->unit_count; u++) {
        const dt_unit *unit = &h.model->units[u];
        int64_t end = 0;

        for (int p = unit->first_param; p < unit->first_param + unit->param_count; p++) {
            const dt_param *param = &h.model->params[p];
            bool follows = false;

            for (size_t j = 0; j < 3; j++)
                follows |= strstr(param->name, joined[j]) != NULL;
            assert_int_equal(param->offset_elems, follows ? end : (end + 15) / 16 * 16);
            end = param->offset_elems + param->elems;
        }
        assert_int_equal(unit->elems, (end + 15) / 16 * 16);
    }
    harness_close(&h);
}

/* 6 N + 12 L H D T, N without norms: SmolLM2-135M at 1024 tokens. */
static void test_the_flops_are_those_of_the_products(void **state)
{
    dt_model_config config = plain();
    double matrices = 30.0 * (576 * 960 + 576 * 576 + 3 * 576 * 1536) + 49152.0 * 576;

    config.tokens = config.decoder.context = 1024;
    config.decoder.layers = 30;
    config.decoder.heads = 9;
    config.llama.kv_heads = 3;
    config.decoder.embed = 576;
    config.llama.head_width = 64;
    config.llama.ffn = 1536;
    config.decoder.vocab = config.decoder.vocab_padded = 49152;
    assert_true(dt_model_flops_per_token(&config) == 6 * matrices + 12.0 * 30 * 576 * 1024);
}

static void test_a_config_that_cannot_be_is_refused_with_the_reason(void **state)
{
    dt_model_config config = plain();

    config.llama.kv_heads = 3;
    harness_expect_refused(config, "'kv_heads' (3) does not divide 'heads' (4)");
    config = plain();
    config.llama.kv_heads = 8;
    harness_expect_refused(config, "'kv_heads' is 8");
    config = plain();
    config.llama.head_width = 7;
    harness_expect_refused(config, "heads of width 7 cannot be rotated in pairs");
    config = plain();
    config.llama.ffn = 0;
    harness_expect_refused(config, "'ffn' is 0");
    config = plain();
    config.llama.rope_scaling = DT_ROPE_LLAMA3;
    config.llama.rope_low_freq_factor = config.llama.rope_high_freq_factor = 4;
    config.llama.rope_original_tokens = 8192;
    harness_expect_refused(config, "the second above the first");
    config = plain();
    config.llama.rope_theta = (double)NAN;
    harness_expect_refused(config, "'rope_theta'");
    config = plain();
    config.decoder.vocab_padded = 100;
    harness_expect_refused(config, "padded to 100");
}

/* --- recomputation */

static void test_recomputation_gives_the_same_bits(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (size_t d = 0; d < 3; d++) {
        dt_model_config config = rich(dtypes[d]);

        harness_expect_same_bits(config, dt_dtype_name(dtypes[d]), NULL);
        config.decoder.layers = 1;
        harness_expect_same_bits(config, "one block", NULL);
        config = plain();
        config.dtype = dtypes[d];
        harness_expect_same_bits(config, "plain", NULL);
    }
}

static void test_weights_are_used_where_the_hooks_bring_them(void **state)
{
    harness_expect_hooked_weights(rich(DT_F32));
}

/* --- memory */

static void test_the_arena_is_used_to_the_last_byte(void **state)
{
    harness_expect_full_arena(rich(DT_F32));
}

/* Compares the bytes of `dtrun plan` with the allocated ones, which are more by the rounding of
 * at most seventeen tensors for each block, and twenty others, to 64 bytes. */
static void test_the_description_is_what_a_model_takes(void **state)
{
    for (int i = 0; i < 96; i++) {
        dt_model_config config = i % 2 ? rich(DT_F32) : plain();
        int64_t said, taken;

        config.dtype = (dt_dtype[]){DT_F32, DT_BF16, DT_F16}[i % 3];
        config.recompute = harness_recompute_kinds[i / 3 % HARNESS_RECOMPUTE_KINDS];
        config.decoder.layers = 1 + i % 7;
        config.decoder.embed *= i % 4 < 2 ? 1 : 8;
        config.llama.ffn *= i % 5 < 3 ? 1 : 9;
        config.batch = i % 9 + 1;
        config.tokens = config.decoder.context = 16 * (1 + i % 11);
        config.decoder.vocab = config.decoder.vocab_padded = i % 8 ? 128 : 50304;
        config.inference = i % 13 == 12;
        if (i % 2 ==
            0) /* heads and widths that tensor ranks divide, some of which share a key head */
            config.tensor = (dt_tensor_place){i % 3 > 0, 1 << i % 3};
        said = dt_architecture_find(DT_MODEL_LLAMA)->activation_bytes(&config);
        taken = (int64_t)dt_model_activation_bytes(&config);
        if (taken > said + 64 * (17 * config.decoder.layers + 20) || said > taken)
            fail_msg("case %d: the model takes %lld bytes, the description says %lld", i,
                     (long long)taken, (long long)said);
    }
}

/* --- growing sequences */

static void expect_growth(dt_model_config config, double bound)
{
    static const int64_t ends[] = {1, 2, 7, 8, 41, 42, 69, 70};
    float *whole, *logits;
    dt_error err = DT_ERROR_INIT;
    int64_t from = 0, V;
    dt_batch all;
    harness h;

    config.batch = 1;
    config.decoder.context = config.tokens = 70;
    config.decoder.dropout = config.decoder.attention_dropout = 0;
    config.inference = config.incremental = true;
    harness_open_filled(&h, &config);
    V = harness_vocab(&h);
    whole = calloc((size_t)(config.tokens * V), sizeof *whole);
    logits = calloc((size_t)V, sizeof *logits);
    all = h.batch;
    all.inputs[DT_DECODER_TARGETS].data = NULL;
    assert_int_equal(dt_model_logits(h.model, &all, config.tokens, whole, &err), DT_OK);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; from = ends[i++]) {
        dt_tensor tokens = dt_tensor_2d(h.tokens + from, DT_I32, 1, ends[i] - from);
        double error;

        assert_int_equal(dt_model_extended(h.model, 0), from);
        assert_int_equal(dt_model_extend(h.model, 0, &tokens, logits, &err), DT_OK);
        error = relative_norm(logits, whole + (ends[i] - 1) * V, V);
        if (!(error <= bound))
            fail_msg("%s, up to token %lld: relative error %.3g", dt_dtype_name(config.dtype),
                     (long long)ends[i], error);
        if (i == 3) /* a pass in between does not change the sequence */
            assert_int_equal(dt_model_logits(h.model, &all, config.tokens, whole, &err), DT_OK);
    }
    free(whole);
    free(logits);
    harness_close(&h);
}

static void test_a_growing_sequence_gives_the_whole_ones_logits(void **state)
{
    dt_model_config config = plain();

    expect_growth(rich(DT_F32), 1e-5);
    expect_growth(config, 1e-5);
    expect_growth(rich(DT_BF16), 2e-2);
    expect_growth(rich(DT_F16), 3e-3);
}

/* Only keys and values, of two heads. */
static void test_what_is_kept_is_in_the_bytes(void **state)
{
    dt_model_config config = plain();
    size_t with;

    config.inference = config.incremental = true;
    with = dt_model_activation_bytes(&config);
    config.incremental = false;
    assert_int_equal(with - dt_model_activation_bytes(&config), 2 * (3 * 16 * 2 * 6) * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_has_the_names_of_transformers),
        cmocka_unit_test(test_matrices_of_one_input_are_one_matrix),
        cmocka_unit_test(test_the_flops_are_those_of_the_products),
        cmocka_unit_test(test_a_config_that_cannot_be_is_refused_with_the_reason),
        cmocka_unit_test(test_recomputation_gives_the_same_bits),
        cmocka_unit_test(test_weights_are_used_where_the_hooks_bring_them),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
        cmocka_unit_test(test_the_description_is_what_a_model_takes),
        cmocka_unit_test(test_a_growing_sequence_gives_the_whole_ones_logits),
        cmocka_unit_test(test_what_is_kept_is_in_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
