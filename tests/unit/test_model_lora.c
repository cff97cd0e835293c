/* Adapters of low rank: their loss and gradients against PyTorch and PEFT (tests/golden/make_lora_fixture.py), and
 * against a model with merged weights; recomputation, memory, growing sequences, and initial values.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/decoder/decoder.h"
#include "tests/golden/safetensors.h"
#include "tests/unit/model_harness.h"

#define ALL UINT32_MAX

static dt_model_config gpt2(void)
{
    dt_model_config config = harness_config();

    config.lora = (dt_lora_config){.rank = 3, .scale = 1.7, .targets = ALL};
    return config;
}

/* Heads and widths that two and four tensor ranks divide. */
static dt_model_config llama(void)
{
    dt_model_config config = harness_config();

    config.kind = DT_MODEL_LLAMA;
    config.decoder.heads = 4;
    config.llama = (dt_llama_config){.kv_heads = 2,
                                     .head_width = 6,
                                     .ffn = 40,
                                     .norm_eps = 1e-5,
                                     .rope_theta = 10000,
                                     .rope_factor = 1};
    config.lora = (dt_lora_config){.rank = 3, .scale = 0.6, .targets = ALL};
    return config;
}

/* q and v alone, or k, up and down: rows of a joined weight without an adapter, at every place. */
static dt_model_config some(uint32_t targets)
{
    dt_model_config config = llama();

    config.llama.qkv_bias = config.llama.qk_norm = true;
    config.lora.targets = targets;
    return config;
}

#define Q_AND_V       UINT32_C(0x05)
#define K_UP_AND_DOWN UINT32_C(0x62)
#define V_AND_GATE    UINT32_C(0x14)

static dt_model_config config_of(int i)
{
    switch (i) {
    case 0:
        return gpt2();
    case 1:
        return llama();
    case 2:
        return some(Q_AND_V);
    case 3:
        return some(K_UP_AND_DOWN);
    default:
        return some(V_AND_GATE);
    }
}
#define CONFIGS 5

/* Sets values, and those of B off 0. */
static void fill(harness *h)
{
    harness_init(h, 5);
    for (int p = 0; p < h->model->param_count; p++)
        for (int64_t i = 0;
             strstr(h->model->params[p].name, "lora_B") != NULL && i < h->model->params[p].elems;
             i++)
            harness_value(h, p)[i] = 0.2f * sinf((float)(i * 7 + p));
    harness_values_changed(h);
}

/* --- against PEFT */

static uint32_t targets_of(const fixture *f, dt_architecture_kind kind)
{
    const json_t *about = json_object_get(f->header, "__metadata__");
    const char *names = json_string_value(json_object_get(about, "targets"));
    const dt_lora_target *targets = dt_architecture_find(kind)->targets;
    uint32_t bits = 0;
    char room[256], *rest = room;

    snprintf(room, sizeof(room), "%s", names);
    for (const char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
        for (int i = 0; targets[i].name != NULL; i++)
            if (strcmp(targets[i].module, name) == 0)
                bits |= UINT32_C(1) << i;
    return bits;
}

static dt_model_config config_of_fixture(const fixture *f, const char *model)
{
    dt_model_config config = harness_config();

    config.kind = strcmp(model, "gpt2") == 0 ? DT_MODEL_GPT2 : DT_MODEL_LLAMA;
    config.batch = 4;
    config.tokens = 13;
    config.decoder.heads = (int64_t)fixture_number(f, "heads");
    config.decoder.embed = (int64_t)fixture_number(f, "embed");
    config.decoder.context = (int64_t)fixture_number(f, "context");
    config.decoder.documents = true;
    config.decoder.own_lm_head = fixture_number(f, "own_lm_head") != 0;
    config.lora = (dt_lora_config){.rank = (int64_t)fixture_number(f, "rank"),
                                   .scale = fixture_number(f, "scale"),
                                   .targets = targets_of(f, config.kind)};
    if (config.kind == DT_MODEL_LLAMA)
        config.llama = (dt_llama_config){.kv_heads = (int64_t)fixture_number(f, "kv_heads"),
                                         .head_width = (int64_t)fixture_number(f, "head_width"),
                                         .ffn = (int64_t)fixture_number(f, "ffn"),
                                         .norm_eps = 1e-5,
                                         .rope_theta = 10000,
                                         .rope_factor = 1,
                                         .qkv_bias = fixture_number(f, "qkv_bias") != 0};
    return config;
}

static const float *stored(const fixture *f, const char *prefix, const dt_param *param)
{
    char name[160];

    snprintf(name, sizeof(name), "%s%s", prefix, param->name);
    return fixture_get(f, name, "F32", param->elems / param->dim[0] * param->stored_rows);
}

/* Inputs of the fixture, (4,13) each. */
static dt_batch batch_of_fixture(const fixture *f)
{
    static const char *const names[] = {"tokens", "targets", "starts", "positions"};
    dt_batch batch = {.seed = 1};

    for (int i = 0; i < 4; i++)
        batch.inputs[i] =
            dt_tensor_2d((void *)(uintptr_t)fixture_get(f, names[i], "I32", 52), DT_I32, 4, 13);
    return batch;
}

static int64_t count_of(const dt_batch *batch)
{
    const int32_t *targets = batch->inputs[DT_DECODER_TARGETS].data;
    int64_t counted = 0;

    for (int i = 0; i < 52; i++)
        counted += targets[i] >= 0;
    return counted;
}

static dt_batch rows_of(const dt_batch *batch, int64_t first, int64_t rows)
{
    dt_batch part = *batch;

    for (int i = 0; i < 4; i++) {
        part.inputs[i].data = (int32_t *)part.inputs[i].data + first * 13;
        part.inputs[i].dim[0] = rows;
    }
    return part;
}

/* parts: micro-steps of the batch. */
static void expect_peft(const char *model, int64_t parts, dt_recompute_kind recompute)
{
    dt_model_config config;
    dt_batch batch;
    char path[96];
    double loss = 0;
    int64_t counted;
    fixture f;
    harness h;

    snprintf(path, sizeof(path), "tests/golden/lora_%s.safetensors", model);
    fixture_open(&f, path);
    config = config_of_fixture(&f, model);
    config.recompute = recompute;
    harness_open(&h, &config);
    for (int p = 0; p < h.model->param_count; p++) {
        const dt_param *param = &h.model->params[p];

        memset(harness_value(&h, p), 0, (size_t)param->elems * sizeof(float));
        memcpy(harness_value(&h, p), stored(&f, "", param),
               (size_t)(param->elems / param->dim[0] * param->stored_rows) * sizeof(float));
        assert_int_equal(param->trainable, strstr(param->name, "lora_") != NULL);
        assert_int_equal(param->in_base, !param->trainable);
    }
    harness_values_changed(&h);
    batch = batch_of_fixture(&f);
    counted = count_of(&batch);
    harness_zero_grads(&h);
    for (int64_t i = 0; i < parts; i++) {
        dt_batch part = rows_of(&batch, i * 4 / parts, 4 / parts);

        loss += harness_pass(&h, &part, 1.0 / (double)counted);
    }
    loss /= (double)counted;
    if (!(fabs(loss - *(const double *)fixture_get(&f, "loss", "F64", 1)) <= 1e-5))
        fail_msg("%s: loss %.9g, PEFT %.9g", model, loss,
                 *(const double *)fixture_get(&f, "loss", "F64", 1));
    for (int p = 0; p < h.model->param_count; p++) {
        const dt_param *param = &h.model->params[p];
        double error;

        if (!param->trainable)
            continue;
        error = relative_norm(harness_grad(&h, p), stored(&f, "grad.", param), param->elems);
        if (!(error <= 1e-5))
            fail_msg("%s: gradient of %s off by %.3g", model, param->name, error);
    }
    harness_close(&h);
    fixture_close(&f);
}

static void test_loss_and_gradients_are_those_of_peft(void **state)
{
    static const char *const models[] = {"llama", "qwen2", "gpt2"};

    for (size_t m = 0; m < 3; m++)
        for (int64_t parts = 1; parts <= 4; parts *= 2)
            for (int r = 0; r < HARNESS_RECOMPUTE_KINDS; r++)
                expect_peft(models[m], parts, harness_recompute_kinds[r]);
}

/* --- pairs of answers, against TRL (tests/golden/make_dpo_fixture.py) */

#define PAIRS       4
#define PAIR_TOKENS 48

static dt_batch pairs_of(const fixture *f)
{
    static const char *const names[] = {"tokens", "targets", "starts", "positions", "weights"};
    dt_batch batch = {.seed = 1};

    for (int i = 0; i < 5; i++)
        batch.inputs[i] = dt_tensor_2d(
            (void *)(uintptr_t)fixture_get(f, names[i], i < 4 ? "I32" : "F32", PAIRS * PAIR_TOKENS),
            i < 4 ? DT_I32 : DT_F32, PAIRS, PAIR_TOKENS);
    batch.inputs[DT_DECODER_REFERENCE] = dt_tensor_2d(
        (void *)(uintptr_t)fixture_get(f, "reference", "F32", PAIRS), DT_F32, PAIRS, 1);
    return batch;
}

static double number_of(const fixture *f, const char *name)
{
    return *(const double *)fixture_get(f, name, "F64", 1);
}

static void open_pairs(harness *h, const fixture *f, dt_recompute_kind recompute)
{
    dt_model_config config = config_of_fixture(f, "llama");

    config.tokens = PAIR_TOKENS;
    config.batch = PAIRS;
    config.recompute = recompute;
    config.decoder.weights = true;
    config.decoder.beta = fixture_number(f, "beta");
    harness_open(h, &config);
    for (int p = 0; p < h->model->param_count; p++) {
        const dt_param *param = &h->model->params[p];

        memset(harness_value(h, p), 0, (size_t)param->elems * sizeof(float));
        memcpy(harness_value(h, p), stored(f, "", param),
               (size_t)(param->elems / param->dim[0] * param->stored_rows) * sizeof(float));
    }
    harness_values_changed(h);
    harness_zero_grads(h);
}

static void expect_gradients(const harness *h, const fixture *f, const char *what)
{
    for (int p = 0; p < h->model->param_count; p++) {
        const dt_param *param = &h->model->params[p];
        double error;

        if (!param->trainable)
            continue;
        error = relative_norm(harness_grad(h, p), stored(f, "grad.", param), param->elems);
        if (!(error <= 1e-5))
            fail_msg("%s: gradient of %s off by %.3g", what, param->name, error);
    }
}

static void test_pairs_have_the_loss_and_gradients_of_trl(void **state)
{
    fixture f;

    fixture_open(&f, "tests/golden/dpo_llama.safetensors");
    for (int i = 0; i < 3 * 3; i++) {
        int64_t parts = (int64_t[]){1, 2, 4}[i / 3];
        dt_pair_sums sums, all = {0};
        const float *ratios;
        dt_batch batch = pairs_of(&f);
        double loss = 0;
        harness h;

        open_pairs(&h, &f, harness_recompute_kinds[i % HARNESS_RECOMPUTE_KINDS]);
        for (int64_t k = 0; k < parts; k++) {
            dt_batch part = batch;

            for (int n = 0; n < DT_INPUTS_MAX; n++) {
                int64_t width = batch.inputs[n].dim[1], rows = PAIRS / parts;

                part.inputs[n].data = (int32_t *)batch.inputs[n].data + k * rows * width;
                part.inputs[n].dim[0] = rows;
            }
            loss += harness_pass(&h, &part, 1.0 / PAIRS);
            dt_model_pairs(&sums, &ratios, h.model);
            all.margin += sums.margin;
            all.right += sums.right;
            all.pairs += sums.pairs;
        }
        assert_true(fabs(loss / PAIRS - number_of(&f, "loss")) <= 1e-5);
        assert_true(fabs(all.margin / PAIRS - number_of(&f, "margin")) <= 1e-5);
        assert_true((double)all.right / PAIRS == number_of(&f, "accuracy"));
        assert_int_equal(all.pairs, PAIRS);
        expect_gradients(&h, &f, "pairs");
        harness_close(&h);
    }
    fixture_close(&f);
}

static void test_the_reference_is_the_model_with_its_adapter_off(void **state)
{
    const float *ratios, *wanted;
    dt_error err = DT_ERROR_INIT;
    double loss, counted;
    dt_pair_sums sums;
    dt_batch batch;
    fixture f;
    harness h;

    fixture_open(&f, "tests/golden/dpo_llama.safetensors");
    open_pairs(&h, &f, DT_RECOMPUTE_NONE);
    batch = pairs_of(&f);
    wanted = batch.inputs[DT_DECODER_REFERENCE].data;
    assert_int_equal(dt_model_evaluate(h.model, &batch, &loss, &counted, &err), DT_OK);
    assert_true(fabs(loss / PAIRS - number_of(&f, "loss")) <= 1e-5);
    assert_true(counted == PAIRS);
    h.model->adapter_off = true;
    assert_int_equal(dt_model_evaluate(h.model, &batch, &loss, &counted, &err), DT_OK);
    dt_model_pairs(&sums, &ratios, h.model);
    for (int i = 0; i < PAIRS; i++)
        assert_true(fabsf(ratios[i] - wanted[i]) <= 1e-5f * (1 + fabsf(wanted[i])));
    assert_true(fabs(loss / PAIRS - log(2)) <= 1e-5); /* nothing has moved yet */
    assert_true(fabs(sums.margin) <= 1e-4);
    harness_close(&h);
    fixture_close(&f);
}

/* --- against merged weights */

/* W += scale B A of every target. */
static void merge(harness *whole, const harness *h)
{
    const dt_model *model = h->model;
    double scale = model->config.lora.scale;

    for (int p = 0; p < model->param_count; p++) {
        char name[160];
        const char *end = strstr(model->params[p].name, ".lora_A.weight");
        int a = p, b, w;

        if (end == NULL)
            continue;
        snprintf(name, sizeof(name), "%.*s.weight", (int)(end - model->params[p].name),
                 model->params[p].name);
        w = harness_param(whole, name);
        snprintf(name, sizeof(name), "%.*s.lora_B.weight", (int)(end - model->params[p].name),
                 model->params[p].name);
        b = harness_param(h, name);
        for (int64_t o = 0; o < model->params[b].dim[0]; o++)
            for (int64_t i = 0; i < model->params[a].dim[1]; i++) {
                double sum = 0;

                for (int64_t r = 0; r < model->config.lora.rank; r++)
                    sum += (double)harness_value(h, b)[o * model->config.lora.rank + r] *
                           (double)harness_value(h, a)[r * model->params[a].dim[1] + i];
                harness_value(whole, w)[o * model->params[a].dim[1] + i] += (float)(scale * sum);
            }
    }
    harness_values_changed(whole);
}

static void copy_base(harness *whole, const harness *h)
{
    for (int p = 0; p < whole->model->param_count; p++) {
        int from = harness_param(h, whole->model->params[p].name);

        memcpy(harness_value(whole, p), harness_value(h, from),
               (size_t)whole->model->params[p].elems * sizeof(float));
    }
}

static void test_the_loss_is_that_of_merged_weights(void **state)
{
    for (int i = 0; i < CONFIGS; i++) {
        dt_model_config config = config_of(i);
        double adapted, merged;
        harness h, whole;

        harness_open(&h, &config);
        fill(&h);
        harness_fill_batch(&h, 9);
        config.lora = (dt_lora_config){0};
        harness_open(&whole, &config);
        copy_base(&whole, &h);
        merge(&whole, &h);
        harness_fill_batch(&whole, 9);
        adapted = harness_pass(&h, &h.batch, 1);
        merged = harness_pass(&whole, &whole.batch, 1);
        if (!(fabs(adapted - merged) <= 1e-5 * merged))
            fail_msg("config %d: loss %.9g, with merged weights %.9g", i, adapted, merged);
        harness_close(&h);
        harness_close(&whole);
    }
}

/* --- recomputation, memory */

static void test_recomputation_gives_the_same_bits(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (int i = 0; i < CONFIGS * 3 * 2; i++) {
        dt_model_config config = config_of(i % CONFIGS);

        config.dtype = dtypes[i / CONFIGS % 3];
        config.lora.dropout = i / CONFIGS / 3 ? 0.3 : 0;
        config.decoder.dropout = i % 2 ? 0.1 : 0;
        harness_expect_same_bits(config, dt_dtype_name(config.dtype), NULL);
    }
}

static void test_weights_are_used_where_the_hooks_bring_them(void **state)
{
    for (int i = 0; i < CONFIGS; i++)
        harness_expect_hooked_weights(config_of(i));
}

static void test_the_arena_is_used_to_the_last_byte(void **state)
{
    for (int i = 0; i < 2 * CONFIGS; i++) {
        dt_model_config config = config_of(i % CONFIGS);

        config.lora.dropout = i < CONFIGS ? 0 : 0.1;
        harness_expect_full_arena(config);
    }
}

/* As in test_model_llama.c; the adapter has at most six tensors. */
static void test_the_description_is_what_a_model_takes(void **state)
{
    for (int i = 0; i < 96; i++) {
        dt_model_config config = config_of(i % CONFIGS);
        int64_t said, taken;

        config.dtype = (dt_dtype[]){DT_F32, DT_BF16, DT_F16}[i % 3];
        config.recompute = harness_recompute_kinds[i / 3 % HARNESS_RECOMPUTE_KINDS];
        config.decoder.layers = 1 + i % 7;
        config.decoder.embed *= i % 4 < 2 ? 1 : 8;
        config.batch = i % 9 + 1;
        config.tokens = config.decoder.context = i % 11 ? 16 * (1 + i % 11) : 8192;
        config.inference = i % 13 == 12;
        config.lora.rank = 1 + i % 8;
        if (config.kind == DT_MODEL_LLAMA && i % 2 == 0)
            config.tensor = (dt_tensor_place){i % 3 > 0, 1 << i % 3};
        else
            config.lora.dropout = i % 4 == 1 ? 0.2 : 0;
        said = dt_architecture_find(config.kind)->activation_bytes(&config);
        taken = (int64_t)dt_model_activation_bytes(&config);
        if (taken > said + 64 * (17 * config.decoder.layers + 28) || said > taken)
            fail_msg("case %d: the model takes %lld bytes, the description says %lld", i,
                     (long long)taken, (long long)said);
    }
}

/* --- growing sequences: q, k and v are separate products then */

static void test_a_growing_sequence_gives_the_whole_ones_logits(void **state)
{
    static const int64_t ends[] = {1, 2, 7, 16};

    for (int c = 0; c < CONFIGS; c++) {
        dt_model_config config = config_of(c);
        float whole[16 * 61], logits[61];
        dt_error err = DT_ERROR_INIT;
        int64_t from = 0;
        dt_batch all;
        harness h;

        config.batch = 1;
        config.tokens = 16;
        config.inference = config.incremental = true;
        harness_open(&h, &config);
        fill(&h);
        harness_fill_batch(&h, 3);
        all = h.batch;
        all.inputs[DT_DECODER_TARGETS].data = NULL;
        assert_int_equal(dt_model_logits(h.model, &all, 16, whole, &err), DT_OK);
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; from = ends[i++]) {
            dt_tensor tokens = dt_tensor_2d(h.tokens + from, DT_I32, 1, ends[i] - from);

            assert_int_equal(dt_model_extend(h.model, 0, &tokens, logits, &err), DT_OK);
            assert_true(relative_norm(logits, whole + (ends[i] - 1) * 61, 61) <= 1e-5);
        }
        harness_close(&h);
    }
}

/* --- initial values: A as PEFT draws it, B zero, the same for any part */

static void test_initial_values_are_those_of_peft(void **state)
{
    dt_model_config config = llama();
    harness h;

    harness_open(&h, &config);
    for (int p = 0; p < h.model->param_count; p++) {
        const dt_param *param = &h.model->params[p];
        float *all = calloc((size_t)param->elems, sizeof *all), part[5];
        double bound = 1 / sqrt((double)param->dim[1]), squares = 0;

        if (strstr(param->name, "lora_") == NULL) {
            free(all);
            continue;
        }
        dt_model_init_param(all, h.model, p, 77);
        for (int64_t i = 0; i < param->elems; i++) {
            assert_true(fabs((double)all[i]) <= bound);
            squares += (double)all[i] * (double)all[i];
        }
        dt_model_init_range(part, h.model, p, 6, 5, 77);
        assert_memory_equal(part, all + 6, sizeof part);
        if (strstr(param->name, "lora_B") != NULL)
            assert_true(squares == 0);
        else /* the variance of such numbers is bound^2 / 3 */
            assert_true(fabs(squares / (double)param->elems / (bound * bound / 3) - 1) < 0.3);
        free(all);
    }
    harness_close(&h);
}

static void test_dropout_changes_the_loss_and_is_the_same_again(void **state)
{
    dt_model_config config = llama();
    double without, first, again;
    harness h;

    for (int i = 0; i < 2; i++) {
        config.lora.dropout = i == 0 ? 0 : 0.4;
        harness_open(&h, &config);
        fill(&h);
        harness_fill_batch(&h, 9);
        first = harness_pass(&h, &h.batch, 1);
        again = harness_pass(&h, &h.batch, 1);
        assert_true(first == again);
        if (i == 0)
            without = first;
        else
            assert_true(fabs(first - without) > 1e-6);
        harness_close(&h);
    }
}

static void test_a_config_that_cannot_be_is_refused_with_the_reason(void **state)
{
    dt_model_config config = llama();

    config.lora.dropout = 1;
    harness_expect_refused(config, "'lora.dropout' is 1");
    config = llama();
    config.lora.rank = 100000;
    harness_expect_refused(config, "'lora.rank' is 100000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_and_gradients_are_those_of_peft),
        cmocka_unit_test(test_pairs_have_the_loss_and_gradients_of_trl),
        cmocka_unit_test(test_the_reference_is_the_model_with_its_adapter_off),
        cmocka_unit_test(test_the_loss_is_that_of_merged_weights),
        cmocka_unit_test(test_recomputation_gives_the_same_bits),
        cmocka_unit_test(test_weights_are_used_where_the_hooks_bring_them),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
        cmocka_unit_test(test_the_description_is_what_a_model_takes),
        cmocka_unit_test(test_a_growing_sequence_gives_the_whole_ones_logits),
        cmocka_unit_test(test_initial_values_are_those_of_peft),
        cmocka_unit_test(test_dropout_changes_the_loss_and_is_the_same_again),
        cmocka_unit_test(test_a_config_that_cannot_be_is_refused_with_the_reason),
    };

    return cmocka_run_group_tests_name("model: adapters of low rank", tests, NULL, NULL);
}
