/* Parameter table, start values, sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model_harness.h"

static dt_model_config gpt2_small(void)
{
    dt_model_config config = {.decoder.layers = 12,
                              .decoder.heads = 12,
                              .decoder.embed = 768,
                              .decoder.vocab = 50257,
                              .decoder.vocab_padded = 50304,
                              .decoder.context = 1024,
                              .batch = 1,
                              .tokens = 1024,
                              .dtype = DT_BF16};
    return config;
}

static void test_the_table_has_the_published_names_in_unit_order(void **state)
{
    static const char *const block[] = {
        "ln_1.weight",        "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",
        "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",
        "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};
    dt_model_config config = harness_config();
    harness h;

    harness_open(&h, &config);
    assert_int_equal(h.model->unit_count, 3);
    assert_int_equal(h.model->param_count, 4 + 2 * 12);
    assert_string_equal(h.model->params[0].name, "wte.weight");
    assert_string_equal(h.model->params[1].name, "wpe.weight");
    assert_string_equal(h.model->params[2].name, "ln_f.weight");
    assert_string_equal(h.model->params[3].name, "ln_f.bias");
    for (int i = 0; i < 12; i++) {
        const dt_param *param = &h.model->params[h.model->units[2].first_param + i];

        assert_memory_equal(param->name, "h.1.", 4);
        assert_string_equal(param->name + 4, block[i]);
        assert_int_equal(param->unit, 2);
        assert_int_equal(param->decay, param->ndim == 2);
    }
    harness_close(&h);
}

static dt_model_config fairseq_config(void)
{
    dt_model_config config = harness_config();

    config.gpt2.positions = DT_POSITIONS_SINUSOIDAL;
    config.gpt2.scale_embedding = config.decoder.own_lm_head = true;
    return config;
}

static void test_a_head_of_its_own_is_in_the_table_and_sinusoidal_positions_are_not(void **state)
{
    static const char *const root[] = {"wte.weight", "ln_f.weight", "ln_f.bias", "lm_head.weight"};
    dt_model_config config = fairseq_config();
    int64_t tied_elems;
    harness h;

    harness_open(&h, &config);
    assert_int_equal(h.model->units[0].param_count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(h.model->params[i].name, root[i]);
    assert_int_equal(h.model->params[3].dim[0], 128);
    assert_true(h.model->params[3].decay);
    assert_string_equal(h.model->params[4].name, "h.0.ln_1.weight");
    tied_elems = dt_model_param_elems(h.model) - 128 * 24;
    harness_close(&h);
    config.decoder.own_lm_head = false;
    harness_open(&h, &config);
    assert_int_equal(h.model->param_count, 3 + 2 * 12);
    assert_int_equal(dt_model_param_elems(h.model), tied_elems);
    harness_close(&h);
}

/* The embedding is a lookup and not a product: neither a separate head nor positions change the formula. */
static void test_the_flops_are_those_of_the_products(void **state)
{
    dt_model_config tied = harness_config(), own_lm_head = fairseq_config();

    own_lm_head.recompute = DT_RECOMPUTE_FULL;
    assert_true(dt_model_flops_per_token(&tied) == dt_model_flops_per_token(&own_lm_head));
}

static void test_parameters_lie_apart_at_multiples_of_sixteen(void **state)
{
    dt_model_config config = harness_config();
    harness h;

    config.decoder.embed = 15; /* no size is a multiple of another */
    harness_open(&h, &config);
    for (int u = 0; u < h.model->unit_count; u++) {
        const dt_unit *unit = &h.model->units[u];
        int64_t end = 0;

        for (int p = unit->first_param; p < unit->first_param + unit->param_count; p++) {
            const dt_param *param = &h.model->params[p];

            assert_int_equal(param->offset_elems % 16, 0);
            assert_true(param->offset_elems >= end && param->offset_elems < end + 16);
            assert_int_equal(param->elems, param->dim[0] * param->dim[1]);
            end = param->offset_elems + param->elems;
        }
        assert_true(unit->elems >= end);
    }
    harness_close(&h);
}

static void test_gpt2_small_has_its_published_size(void **state)
{
    dt_model_config config = gpt2_small();
    dt_device device = {0};
    dt_error err = DT_ERROR_INIT;
    dt_model *model;
    double matrices = 12.0 * 12 * 768 * 768 + 50257.0 * 768;

    config.inference = true;
    config.tokens = 1;
    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_int_equal(dt_model_open(&model, &config, &device, &err), DT_OK);
    /* 124,439,808 as published, plus 47 rows of padding */
    assert_int_equal(dt_model_param_elems(model), 124439808 + 47 * 768);
    dt_model_close(model);
    dt_device_close(&device);
    config.tokens = 1024;
    assert_true(dt_model_flops_per_token(&config) == 6 * matrices + 12.0 * 12 * 768 * 1024);
}

/* Mean and deviation of n normal numbers have errors of std/sqrt(n) and std/sqrt(2n); allows five times these. */
static void expect_normal(const float *value, int64_t elems, double std)
{
    double sum = 0, squares = 0, n = (double)elems;

    for (int64_t i = 0; i < elems; i++) {
        sum += value[i];
        squares += (double)value[i] * value[i];
    }
    assert_true(fabs(sum / n) < 5 * std / sqrt(n));
    assert_true(fabs(sqrt(squares / n) - std) < 5 * std / sqrt(2 * n));
}

static void test_start_values_have_gpt2s_distribution(void **state)
{
    dt_model_config config = harness_config();
    float *value;
    harness h;

    config.decoder.embed = 96;
    config.decoder.own_lm_head = true;
    harness_open(&h, &config);
    value = calloc((size_t)config.decoder.vocab_padded * 96 * 4, sizeof *value);
    dt_model_init_param(value, h.model, harness_param(&h, "wte.weight"), 1);
    expect_normal(value, config.decoder.vocab * 96, 0.02);
    for (int64_t i = config.decoder.vocab * 96; i < config.decoder.vocab_padded * 96; i++)
        assert_true(value[i] == 0);
    dt_model_init_param(value, h.model, harness_param(&h, "h.1.mlp.c_fc.weight"), 1);
    expect_normal(value, 4 * 96 * 96, 0.02);
    dt_model_init_param(value, h.model, harness_param(&h, "h.1.mlp.c_proj.weight"), 1);
    expect_normal(value, 4 * 96 * 96, 0.01); /* 0.02 / sqrt(2 * 2 layers) */
    dt_model_init_param(value, h.model, harness_param(&h, "h.0.attn.c_proj.weight"), 1);
    expect_normal(value, 96 * 96, 0.01);
    dt_model_init_param(value, h.model, harness_param(&h, "h.0.attn.c_attn.bias"), 1);
    for (int i = 0; i < 3 * 96; i++)
        assert_true(value[i] == 0);
    dt_model_init_param(value, h.model, harness_param(&h, "ln_f.weight"), 1);
    for (int i = 0; i < 96; i++)
        assert_true(value[i] == 1);
    dt_model_init_param(value, h.model, harness_param(&h, "lm_head.weight"), 1);
    expect_normal(value, config.decoder.vocab * 96, 0.02);
    for (int64_t i = config.decoder.vocab * 96; i < config.decoder.vocab_padded * 96; i++)
        assert_true(value[i] == 0);
    free(value);
    harness_close(&h);
}

static void test_start_values_depend_on_seed_and_place_alone(void **state)
{
    dt_model_config config = harness_config();
    int64_t elems = config.decoder.embed * config.decoder.embed * 3;
    float *a = calloc((size_t)elems, sizeof *a), *b = calloc((size_t)elems, sizeof *b);
    int first, second;
    harness h, other;

    harness_open(&h, &config);
    config.batch = 2; /* another shape of the pass, the same model */
    harness_open(&other, &config);
    first = harness_param(&h, "h.0.attn.c_attn.weight");
    second = harness_param(&h, "h.1.attn.c_attn.weight");
    dt_model_init_param(a, h.model, first, 42);
    dt_model_init_param(b, other.model, first, 42);
    assert_memory_equal(a, b, (size_t)elems * sizeof *a);
    dt_model_init_param(b, h.model, second, 42);
    assert_memory_not_equal(a, b, (size_t)elems * sizeof *a);
    dt_model_init_param(b, h.model, first, 43);
    assert_memory_not_equal(a, b, (size_t)elems * sizeof *a);
    harness_close(&other);
    harness_close(&h);
    free(a);
    free(b);
}

/* Includes padded rows: vocab 61 of 128 rows, large enough for several threads. */
static void test_shares_of_a_parameter_by_any_number_of_threads_have_the_same_bits(void **state)
{
    dt_model_config config = harness_config();
    int64_t elems, cuts[] = {0, 1, 7, 4096, 70001, 100003};
    float *whole, *parts;
    harness h;
    int param;

    config.decoder.embed = 1023;
    harness_open(&h, &config);
    param = harness_param(&h, "wte.weight");
    elems = h.model->params[param].elems;
    assert_true(elems > cuts[5]);
    whole = calloc((size_t)elems, sizeof *whole);
    h.model->device->threads = 1;
    dt_model_init_param(whole, h.model, param, 42);
    for (int threads = 1; threads <= 5; threads += 2) {
        parts = malloc((size_t)elems * sizeof *parts);
        memset(parts, 0xff, (size_t)elems * sizeof *parts);
        h.model->device->threads = threads;
        for (int i = 0; i < 6; i++) {
            int64_t end = i < 5 ? cuts[i + 1] : elems;

            dt_model_init_range(parts + cuts[i], h.model, param, cuts[i], end - cuts[i], 42);
        }
        assert_memory_equal(whole, parts, (size_t)elems * sizeof *whole);
        free(parts);
    }
    free(whole);
    harness_close(&h);
}

static void expect_refused(dt_model_config config, dt_status status, const char *part)
{
    dt_device device = {0};
    dt_error err = DT_ERROR_INIT;
    dt_model *model;

    assert_int_equal(dt_device_open_cpu(&device, 1, &err), DT_OK);
    assert_int_equal(dt_model_open(&model, &config, &device, &err), status);
    assert_null(model);
    if (!strstr(err.message, part))
        fail_msg("'%s' does not hold '%s'", err.message, part);
    dt_device_close(&device);
}

static void test_a_config_that_cannot_be_is_refused_with_the_reason(void **state)
{
    dt_model_config config = harness_config();

    config.decoder.heads = 5;
    expect_refused(config, DT_ERR_RECIPE, "'heads' (5) does not divide 'embed' (24)");
    config = harness_config();
    config.decoder.layers = 0;
    expect_refused(config, DT_ERR_RECIPE, "'layers' is 0");
    config.decoder.layers = 5000;
    expect_refused(config, DT_ERR_RECIPE, "expected 1 to 4095");
    config = harness_config();
    config.tokens = config.decoder.context + 1;
    expect_refused(config, DT_ERR_RECIPE, "'tokens' is 17");
    config = harness_config();
    config.decoder.vocab_padded = 100;
    expect_refused(config, DT_ERR_RECIPE, "padded to 100");
    config = harness_config();
    config.decoder.dropout = 1;
    expect_refused(config, DT_ERR_RECIPE, "'dropout' is 1");
    config.decoder.dropout = (double)NAN;
    expect_refused(config, DT_ERR_RECIPE, "'dropout'");
    config = harness_config();
    config.decoder.attention_dropout = 1;
    expect_refused(config, DT_ERR_RECIPE, "'attention_dropout' is 1");
    config = harness_config();
    config.decoder.heads = config.decoder.embed = 3;
    config.gpt2.positions = DT_POSITIONS_SINUSOIDAL;
    expect_refused(config, DT_ERR_RECIPE, "an 'embed' of 4 or more, not 3");
    config = harness_config();
    config.dtype = DT_I32;
    expect_refused(config, DT_ERR_UNSUPPORTED, "'I32'");
}

static void test_activations_too_large_for_any_memory_are_refused_before_allocation(void **state)
{
    dt_model_config config = harness_config();

    config.batch = 1 << 20;
    config.decoder.context = config.tokens = 1 << 20;
    config.decoder.embed = 3 << 15;
    expect_refused(config, DT_ERR_NOMEM, "smaller batch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_has_the_published_names_in_unit_order),
        cmocka_unit_test(test_a_head_of_its_own_is_in_the_table_and_sinusoidal_positions_are_not),
        cmocka_unit_test(test_the_flops_are_those_of_the_products),
        cmocka_unit_test(test_parameters_lie_apart_at_multiples_of_sixteen),
        cmocka_unit_test(test_gpt2_small_has_its_published_size),
        cmocka_unit_test(test_start_values_have_gpt2s_distribution),
        cmocka_unit_test(test_start_values_depend_on_seed_and_place_alone),
        cmocka_unit_test(test_shares_of_a_parameter_by_any_number_of_threads_have_the_same_bits),
        cmocka_unit_test(test_a_config_that_cannot_be_is_refused_with_the_reason),
        cmocka_unit_test(test_activations_too_large_for_any_memory_are_refused_before_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
