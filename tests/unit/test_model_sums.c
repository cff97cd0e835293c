/* A pass of a rank that divides layers makes as many sums as its kind says (dt_architecture.sums), from which
 * recipes/cost/traffic.c forecasts a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model_harness.h"

#define RANKS 2

typedef struct counts {
    int64_t sums, elems, gathers;
} counts;

static dt_status count_sum(void *self, const dt_tensor *x, dt_error *err)
{
    counts *of = self;

    (void)err;
    assert_int_equal(x->dtype, DT_F32);
    of->sums++;
    of->elems += dt_tensor_elems(x);
    return DT_OK;
}

/* All ranks have what this one has. */
static dt_status count_gather(void *self, const dt_tensor *all, const dt_tensor *own, dt_error *err)
{
    counts *of = self;
    size_t bytes = dt_tensor_bytes(own);

    (void)err;
    assert_int_equal(dt_tensor_bytes(all), RANKS * bytes);
    for (size_t r = 0; r < RANKS; r++)
        memcpy((char *)all->data + r * bytes, own->data, bytes);
    of->gathers++;
    return DT_OK;
}

static dt_model_config config_of(dt_architecture_kind kind, dt_norm_kind norm)
{
    dt_model_config config = harness_config();

    config.kind = kind;
    config.decoder.layers = 3;
    config.decoder.heads = 4;
    config.tensor = (dt_tensor_place){1, RANKS};
    if (kind == DT_MODEL_LLAMA) {
        config.llama = (dt_llama_config){.kv_heads = 2,
                                         .head_width = 6,
                                         .ffn = 40,
                                         .norm_eps = 1e-5,
                                         .rope_theta = 10000,
                                         .rope_factor = 1};
    } else if (kind == DT_MODEL_TRANSFORMER) {
        config.transformer = (dt_transformer_config){.decoder_layers = 2,
                                                     .ffn = 40,
                                                     .source_vocab = 61,
                                                     .source_vocab_padded = 128,
                                                     .pad = 1,
                                                     .norm = norm,
                                                     .label_smoothing = 0.1};
    }
    return config;
}

static int64_t sums_of(const dt_model_config *config)
{
    const dt_architecture *kind = dt_architecture_find(config->kind);
    int units = kind->units(config);
    int64_t sum = 0;

    for (int unit = 0; unit < units; unit++) {
        dt_unit_sums of = kind->sums(config, unit);

        sum += of.forward + of.backward;
        if (config->recompute == DT_RECOMPUTE_FULL && unit < units - 1) /* not the last block */
            sum += of.again;
    }
    return sum;
}

static void expect_sums(dt_architecture_kind kind, dt_norm_kind norm)
{
    for (int k = 0; k < 2 * HARNESS_RECOMPUTE_KINDS; k++) {
        dt_model_config config = config_of(kind, norm);
        counts seen = {0};
        dt_layer_peers peers = {&seen, count_sum, count_gather};
        harness h;

        config.recompute = harness_recompute_kinds[k / 2];
        config.dtype = k % 2 == 0 ? DT_F32 : DT_BF16;
        harness_open(&h, &config);
        for (int u = 0; u < h.model->unit_count; u++)
            memset(h.values[u], 0, (size_t)h.model->units[u].elems * sizeof(float));
        harness_values_changed(&h);
        harness_zero_grads(&h);
        harness_fill_batch(&h, 9);
        h.model->peers = &peers;
        harness_pass(&h, &h.batch, 1);
        assert_int_equal(seen.sums, sums_of(&config));
        assert_int_equal(seen.elems,
                         seen.sums * config.batch * config.tokens * config.decoder.embed);
        assert_int_equal(seen.gathers, 1); /* the logits are one chunk */
        harness_close(&h);
    }
}

static void test_decoders_sum_as_often_as_said(void **state)
{
    expect_sums(DT_MODEL_GPT2, DT_NORM_PRE);
    expect_sums(DT_MODEL_LLAMA, DT_NORM_PRE);
}

static void test_encoder_decoders_sum_as_often_as_said(void **state)
{
    expect_sums(DT_MODEL_TRANSFORMER, DT_NORM_PRE);
    expect_sums(DT_MODEL_TRANSFORMER, DT_NORM_POST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoders_sum_as_often_as_said),
        cmocka_unit_test(test_encoder_decoders_sum_as_often_as_said),
    };

    return cmocka_run_group_tests_name("model: sums of tensor ranks", tests, NULL, NULL);
}
