/* Models some of whose parameters are not trained: the others get the gradients that they have in a model without frozen
 * parameters, to the bit, for every kind and recomputation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/kind.h"
#include "tests/unit/model_harness.h"

#define MLP_ROWS   6
#define MLP_INPUTS 5

static dt_model_config gpt2(void)
{
    dt_model_config config = harness_config();

    config.decoder.dropout = 0.1;
    return config;
}

static dt_model_config gpt2_own_head(void)
{
    dt_model_config config = harness_config();

    config.decoder.own_lm_head = true;
    return config;
}

static dt_model_config llama(void)
{
    dt_model_config config = harness_config();

    config.kind = DT_MODEL_LLAMA;
    config.decoder.attention_dropout = 0.2;
    memset(&config.llama, 0, sizeof config.llama);
    config.llama.kv_heads = 1;
    config.llama.head_width = 10;
    config.llama.ffn = 19;
    config.llama.norm_eps = 1e-5;
    config.llama.rope_theta = 10000;
    config.llama.rope_factor = 1;
    config.llama.qkv_bias = config.llama.qk_norm = true;
    return config;
}

static dt_model_config transformer(void)
{
    dt_model_config config = harness_config();

    config.kind = DT_MODEL_TRANSFORMER;
    config.transformer = (dt_transformer_config){.decoder_layers = 3,
                                                 .ffn = 40,
                                                 .source_vocab = 61,
                                                 .source_vocab_padded = 128,
                                                 .pad = 1,
                                                 .activation = DT_ACTIVATION_RELU,
                                                 .positions = DT_POSITIONS_LEARNED,
                                                 .norm = DT_NORM_PRE};
    return config;
}

static dt_model_config transformer_post(void)
{
    dt_model_config config = transformer();

    config.transformer.norm = DT_NORM_POST;
    config.transformer.positions = DT_POSITIONS_SINUSOIDAL;
    config.transformer.shared_embeddings = true;
    config.decoder.dropout = 0.1;
    return config;
}

static dt_model_config mlp(void)
{
    dt_model_config config = {.kind = DT_MODEL_MLP, .batch = MLP_ROWS, .tokens = 1};

    config.mlp.layers = 2;
    config.mlp.width = 9;
    config.mlp.inputs = MLP_INPUTS;
    config.mlp.outputs = 3;
    config.mlp.activation = DT_ACTIVATION_TANH;
    config.mlp.loss = DT_LOSS_CROSS_ENTROPY;
    return config;
}

static dt_model_config (*const kinds[])(void) = {
    gpt2, gpt2_own_head, llama, transformer, transformer_post, mlp,
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static const char *const patterns[] = {
    "*weight",                             /* biases alone are trained */
    "*bias",                               /* and they alone are not */
    "*mlp* *fc1* *fc2* layers.0.*",        /* one layer of a block */
    "wte* *embed_tokens* head.*",          /* embeddings without their positions */
    "wpe* *embed_positions* *norm* *ln_*", /* positions and norms */
    "h.0.* *layers.0.*",                   /* whole blocks */
    "h.* wte* wpe* *layers.* *embed*",     /* all but an end */
    "nothing*",
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

typedef struct result {
    harness h;
    double loss;
} result;

/* The loss and the gradients of a pass. rows, classes: memory of a batch of rows. */
static void run(result *out, dt_model_config config, const char *frozen, float *rows,
                int32_t *classes)
{
    dt_batch batch;

    config.frozen = frozen;
    harness_open(&out->h, &config);
    harness_init(&out->h, 5);
    if (config.kind != DT_MODEL_MLP) {
        harness_fill_batch(&out->h, 9);
        out->loss = harness_pass(&out->h, &out->h.batch, 0.125);
        return;
    }
    for (int i = 0; i < MLP_ROWS * MLP_INPUTS; i++)
        rows[i] = (float)(i % 7) / 3.5f - 0.8f;
    for (int i = 0; i < MLP_ROWS; i++)
        classes[i] = i % 3;
    batch = (dt_batch){.inputs = {[DT_MLP_ROWS] = dt_tensor_2d(rows, DT_F32, MLP_ROWS, MLP_INPUTS),
                                  [DT_MLP_TARGETS] = dt_tensor_2d(classes, DT_I32, MLP_ROWS, 1)}};
    out->loss = harness_pass(&out->h, &batch, 0.125);
}

/* Returns the number of frozen parameters. */
static int expect_the_same(const result *all, const result *some, const char *frozen)
{
    const dt_model *model = some->h.model;
    int count = 0;

    if (memcmp(&all->loss, &some->loss, sizeof all->loss) != 0)
        fail_msg("%s: loss %.17g, without frozen parameters %.17g", frozen, some->loss, all->loss);
    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];
        int which = i - model->units[param->unit].first_param;

        assert_string_equal(param->name, all->h.model->params[i].name);
        if (!param->trainable) {
            count++;
            assert_null(dt_model_grad(model, param->unit, which).data);
        } else if (memcmp(harness_grad(&some->h, i), harness_grad(&all->h, i),
                          (size_t)param->elems * sizeof(float)) != 0) {
            fail_msg(
                "frozen %s: another gradient of %s, by %.3g", frozen, param->name,
                relative_norm(harness_grad(&some->h, i), harness_grad(&all->h, i), param->elems));
        }
    }
    return count;
}

static void test_trained_parameters_get_the_gradients_of_a_whole_model(void **state)
{
    for (size_t i = 0; i < KINDS * HARNESS_RECOMPUTE_KINDS * 2; i++) {
        dt_model_config config = kinds[i % KINDS]();
        float rows[MLP_ROWS * MLP_INPUTS];
        int32_t classes[MLP_ROWS];
        result all, some;

        config.recompute = harness_recompute_kinds[i / KINDS % HARNESS_RECOMPUTE_KINDS];
        config.dtype = i / KINDS / HARNESS_RECOMPUTE_KINDS == 0 ? DT_F32 : DT_BF16;
        run(&all, config, NULL, rows, classes);
        for (size_t p = 0; p < PATTERNS; p++) {
            int count;

            run(&some, config, patterns[p], rows, classes);
            count = expect_the_same(&all, &some, patterns[p]);
            assert_true(count > 0 || p + 1 == PATTERNS || config.kind == DT_MODEL_MLP);
            harness_close(&some.h);
        }
        harness_close(&all.h);
    }
}

/* Elements of trained and frozen parameters, in buffers of their own, are those of the whole model. */
static void test_frozen_parameters_are_in_a_buffer_of_their_own(void **state)
{
    dt_model_config config = gpt2();
    int64_t trained = 0, frozen = 0;
    dt_error err = DT_ERROR_INIT;
    dt_model *model;

    config.frozen = "h.*.weight  wte.weight ";
    assert_int_equal(dt_model_describe(&model, &config, &err), DT_OK);
    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];
        bool matches = strcmp(param->name, "wte.weight") == 0 ||
                       (param->unit > 0 && strstr(param->name, ".weight") != NULL);

        assert_int_equal(param->trainable, !matches);
        assert_int_equal(param->offset_elems % 16, 0);
        *(param->trainable ? &trained : &frozen) += (param->elems + 15) / 16 * 16;
    }
    for (int u = 0; u < model->unit_count; u++) {
        trained -= model->units[u].elems;
        frozen -= model->units[u].frozen_elems;
    }
    assert_int_equal(trained, 0);
    assert_int_equal(frozen, 0);
    dt_model_description_free(model);
}

static void test_one_matrix_is_frozen_as_a_whole(void **state)
{
    dt_model_config config = llama();

    config.frozen = "*q_proj*";
    harness_expect_refused(config, "name all of them");
    config.frozen = "*q_proj* *k_proj* *v_proj*";
    assert_int_equal(dt_model_config_check(&config, NULL), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trained_parameters_get_the_gradients_of_a_whole_model),
        cmocka_unit_test(test_frozen_parameters_are_in_a_buffer_of_their_own),
        cmocka_unit_test(test_one_matrix_is_frozen_as_a_whole),
    };

    return cmocka_run_group_tests_name("model: frozen parameters", tests, NULL, NULL);
}
