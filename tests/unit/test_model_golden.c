/* The whole model against PyTorch: tests/golden/make_gpt2_fixture.py, make_transformer_fixture.py and
 * make_llama_fixture.py (of transformers' models) computed the same models in double precision, from the same fp32
 * start values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/gpt2/model_int.h"
#include "engine/model/vocabulary.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "tests/golden/safetensors.h"
#include "tests/unit/model_harness.h"

/* fp32: a sum of a few hundred products has an error of some 1e-6 of its size; after two layers and the backward pass
 * this stays below these bounds.
 * Half precision: the error of a tensor, its 2-norm, is at most HALF_FACTOR times that of PyTorch in the same type,
 * which the fixture has. Both round the same weights, but later at different places, so that the error of one element
 * says nothing. The largest ratio over the ISAs of isa.h was 1.4 in bf16 and 1.9 in fp16; HALF_FACTOR is higher, so
 * that another order of summation passes.
 * A loss is one number, whose error may be near 0 in PyTorch: its bound is a few roundings (bf16 4e-3, fp16 5e-4 each).
 * The wide steps of the optimizer (1e-2) let a rounding grow from step to step: the bound of norms is ten times that of
 * the losses. */
#define HALF_FACTOR 2.5

typedef struct bounds {
    dt_dtype dtype;
    double scale; /* of the loss, and thus of the gradients */
    double loss, losses;
    double logits, grad_norm, grad_element; /* only in fp32 */
} bounds;

static const bounds fp32 = {DT_F32, 1, 1e-5, 1e-5, 1e-5, 1e-4, 1e-4};
static const bounds bf16 = {DT_BF16, 1, 1e-2, 1e-2, 0, 0, 0};
/* Gradients are scaled up as in training: unscaled, small ones would be below fp16's smallest number. */
static const bounds fp16 = {DT_F16, 1024, 2e-3, 2e-3, 0, 0, 0};

typedef struct golden_case {
    const char *model; /* of tests/golden/MODEL_*.safetensors */
    const bounds *bounds;
} golden_case;

static const golden_case gpt2_fp32 = {"gpt2", &fp32}, gpt2_bf16 = {"gpt2", &bf16};
static const golden_case gpt2_fp16 = {"gpt2", &fp16};
static const golden_case fairseq_fp32 = {"fairseq_lm", &fp32};
static const golden_case fairseq_bf16 = {"fairseq_lm", &bf16};
static const golden_case fairseq_fp16 = {"fairseq_lm", &fp16};
static const golden_case llama_fp32 = {"llama", &fp32}, llama_bf16 = {"llama", &bf16};
static const golden_case llama_fp16 = {"llama", &fp16};
static const golden_case qwen2_fp32 = {"qwen2", &fp32}, qwen2_bf16 = {"qwen2", &bf16};
static const golden_case qwen2_fp16 = {"qwen2", &fp16};
static const golden_case qwen3_fp32 = {"qwen3", &fp32}, qwen3_bf16 = {"qwen3", &bf16};
static const golden_case qwen3_fp16 = {"qwen3", &fp16};

static const golden_case post_fp32 = {"transformer_post", &fp32};
static const golden_case post_bf16 = {"transformer_post", &bf16};
static const golden_case post_fp16 = {"transformer_post", &fp16};
static const golden_case pre_fp32 = {"transformer_pre", &fp32};
static const golden_case pre_bf16 = {"transformer_pre", &bf16};
static const golden_case pre_fp16 = {"transformer_pre", &fp16};

typedef struct golden {
    fixture start, expect;
    harness h;
    const bounds *bounds;
    const int32_t *tokens, *targets; /* (steps,B,T) */
    const int32_t *source;           /* of a translation model; same shape */
    int64_t steps, vocab, rows;
} golden;

static void open_fixture(fixture *out, const golden_case *which, const char *part)
{
    char path[96];

    snprintf(path, sizeof path, "tests/golden/%s_%s.safetensors", which->model, part);
    fixture_open(out, path);
}

static int64_t whole_number(const golden *g, const char *name)
{
    return (int64_t)fixture_number(&g->start, name);
}

static dt_decoder_config decoder_of(const golden *g)
{
    return (dt_decoder_config){.layers = whole_number(g, "layers"),
                               .heads = whole_number(g, "heads"),
                               .embed = whole_number(g, "embed"),
                               .vocab = whole_number(g, "vocab"),
                               .vocab_padded = 128,
                               .context = whole_number(g, "context")};
}

/* Sets the options of fairseq_lm that GPT-2 does not have. */
static void make_fairseqs(dt_model_config *config)
{
    config->decoder.own_lm_head = true;
    config->gpt2 = (dt_gpt2_config){.activation = DT_ACTIVATION_GELU,
                                    .positions = DT_POSITIONS_SINUSOIDAL,
                                    .scale_embedding = true};
}

static dt_llama_config llama_of(const golden *g)
{
    dt_llama_config own = {.kv_heads = whole_number(g, "kv_heads"),
                           .head_width = whole_number(g, "head_width"),
                           .ffn = whole_number(g, "ffn"),
                           .norm_eps = fixture_number(&g->start, "norm_eps"),
                           .rope_theta = fixture_number(&g->start, "rope_theta"),
                           .rope_factor = 1,
                           .qkv_bias = whole_number(g, "qkv_bias") != 0,
                           .qk_norm = whole_number(g, "qk_norm") != 0};

    own.rope_scaling = (dt_rope_scaling_kind)whole_number(g, "rope_kind");
    if (own.rope_scaling != DT_ROPE_NONE)
        own.rope_factor = fixture_number(&g->start, "rope_factor");
    if (own.rope_scaling == DT_ROPE_LLAMA3) {
        own.rope_low_freq_factor = fixture_number(&g->start, "rope_low_freq_factor");
        own.rope_high_freq_factor = fixture_number(&g->start, "rope_high_freq_factor");
        own.rope_original_tokens = whole_number(g, "rope_original_tokens");
    }
    return own;
}

static dt_transformer_config transformer_of(const golden *g)
{
    int64_t vocab = whole_number(g, "source_vocab");
    bool relu = whole_number(g, "relu") != 0, pre = whole_number(g, "pre") != 0;
    bool sinusoidal = whole_number(g, "sinusoidal") != 0;

    return (dt_transformer_config){.decoder_layers = whole_number(g, "decoder_layers"),
                                   .ffn = whole_number(g, "ffn"),
                                   .source_vocab = vocab,
                                   .source_vocab_padded = 128,
                                   .pad = whole_number(g, "pad"),
                                   .activation = relu ? DT_ACTIVATION_RELU : DT_ACTIVATION_GELU,
                                   .positions =
                                       sinusoidal ? DT_POSITIONS_SINUSOIDAL : DT_POSITIONS_LEARNED,
                                   .norm = pre ? DT_NORM_PRE : DT_NORM_POST,
                                   .scale_embedding = whole_number(g, "scale_embedding") != 0,
                                   .shared_embeddings = whole_number(g, "shared") != 0,
                                   .label_smoothing = fixture_number(&g->start, "smoothing")};
}

static int open_golden(void **state)
{
    const golden_case *which = *state;
    const bounds *bound = which->bounds;
    golden *g = calloc(1, sizeof *g);
    dt_model_config config = {.dtype = bound->dtype};

    assert_non_null(g);
    open_fixture(&g->start, which, "start");
    open_fixture(&g->expect, which, "expect");
    config.decoder = decoder_of(g);
    if (strcmp(which->model, "fairseq_lm") == 0) {
        make_fairseqs(&config);
    } else if (strncmp(which->model, "transformer", 11) == 0) {
        config.kind = DT_MODEL_TRANSFORMER;
        config.decoder.own_lm_head = whole_number(g, "own_lm_head") != 0;
        config.transformer = transformer_of(g);
    } else if (strcmp(which->model, "gpt2") != 0) {
        config.kind = DT_MODEL_LLAMA;
        config.decoder.own_lm_head = whole_number(g, "own_lm_head") != 0;
        config.llama = llama_of(g);
    }
    config.batch = (int64_t)fixture_number(&g->start, "batch");
    config.tokens = (int64_t)fixture_number(&g->start, "tokens");
    harness_open(&g->h, &config);
    g->bounds = bound;
    g->vocab = harness_vocab(&g->h);
    g->rows = config.batch * config.tokens;
    g->steps = (int64_t)fixture_number(&g->start, "steps");
    if (config.kind == DT_MODEL_TRANSFORMER)
        g->source = fixture_get(&g->start, "source", "I32", g->steps * g->rows);
    g->tokens = fixture_get(&g->start, g->source != NULL ? "previous" : "tokens", "I32",
                            g->steps * g->rows);
    g->targets = fixture_get(&g->start, "targets", "I32", g->steps * g->rows);
    *state = g;
    return 0;
}

static int close_golden(void **state)
{
    golden *g = *state;

    harness_close(&g->h);
    fixture_close(&g->start);
    fixture_close(&g->expect);
    free(g);
    return 0;
}

/* Returns the elements of a parameter in the fixture, where embedding and head are not padded. */
static int64_t published_elems(const dt_param *param)
{
    return param->elems / param->dim[0] * param->stored_rows;
}

static void load_start(golden *g)
{
    for (int p = 0; p < g->h.model->param_count; p++) {
        const dt_param *param = &g->h.model->params[p];
        int64_t elems = published_elems(param);

        memcpy(harness_value(&g->h, p), fixture_get(&g->start, param->name, "F32", elems),
               (size_t)elems * sizeof(float));
    }
    harness_values_changed(&g->h);
}

/* Loads the step's batch into the harness; returns the number of tokens that count. */
static int64_t load_batch(golden *g, int64_t step)
{
    int64_t counted = 0;

    memcpy(g->h.tokens, g->tokens + step * g->rows, (size_t)g->rows * sizeof(int32_t));
    if (g->source != NULL)
        memcpy(g->h.source, g->source + step * g->rows, (size_t)g->rows * sizeof(int32_t));
    memcpy(g->h.targets, g->targets + step * g->rows, (size_t)g->rows * sizeof(int32_t));
    for (int64_t i = 0; i < g->rows; i++)
        counted += g->h.targets[i] >= 0;
    return counted;
}

static void expect_close(const char *what, double error, double bound)
{
    if (!(error <= bound))
        fail_msg("%s: relative error %.3g is over %.3g", what, error, bound);
}

static double relative(double a, double b)
{
    return fabs(a - b) / fabs(b);
}

/* Returns the error of a tensor in half precision as a multiple of PyTorch's (the fixture's TYPE.NAME). */
static double half_ratio(const golden *g, const char *name, const float *got, const float *exact,
                         int64_t elems)
{
    char entry[96];
    double square = 0;

    snprintf(entry, sizeof entry, "%s.%s", dt_dtype_name(g->bounds->dtype), name);
    for (int64_t i = 0; i < elems; i++)
        square += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
    return sqrt(square) / *(const double *)fixture_get(&g->expect, entry, "F64", 1);
}

static void expect_half(const char *name, double ratio)
{
    if (!(ratio <= HALF_FACTOR))
        fail_msg("%s: its error is %.3g times PyTorch's, over %.3g", name, ratio, HALF_FACTOR);
}

static void test_logits_are_pytorchs(void **state)
{
    golden *g = *state;
    int64_t elems = g->rows * g->vocab;
    const float *expected = fixture_get(&g->expect, "logits", "F32", elems);
    float *logits = calloc((size_t)elems, sizeof *logits);
    dt_error err = DT_ERROR_INIT;

    load_start(g);
    load_batch(g, 0);
    assert_int_equal(dt_model_logits(g->h.model, &g->h.batch,
                                     g->h.batch.inputs[DT_DECODER_TOKENS].dim[1], logits, &err),
                     DT_OK);
    for (int64_t i = 0; g->source != NULL && i < elems; i++)
        if (g->h.targets[i / g->vocab] < 0)
            logits[i] = 0; /* logits of padding do not matter */
    if (g->bounds->dtype == DT_F32)
        expect_close("logits", relative_norm(logits, expected, elems), g->bounds->logits);
    else
        expect_half("logits", half_ratio(g, "logits", logits, expected, elems));
    free(logits);
}

/* Errors of elements are relative to the tensor's root mean square, since elements near zero
 * have no significant digits. This also covers the key third of c_attn.bias, whose gradient is
 * exactly zero (softmax is invariant to a shift of all keys). */
static double worst_element(const float *a, const float *b, int64_t elems)
{
    double worst = 0, square = 0;

    for (int64_t i = 0; i < elems; i++) {
        worst = fmax(worst, fabs((double)a[i] - b[i]));
        square += (double)b[i] * b[i];
    }
    return worst / sqrt(square / (double)elems);
}

/* Returns true for a gradient that is 0 up to rounding: softmax is invariant to a shift of all
 * keys, unless they are rotated. */
static bool is_nothing(const golden *g, const char *name)
{
    return g->source != NULL && strstr(name, "k_proj.bias") != NULL;
}

/* Runs one pass over the batch. Returns its mean loss; the gradients do not include the loss scale. */
static double pass(golden *g, int64_t counted)
{
    double scale = g->bounds->scale, loss;

    harness_zero_grads(&g->h);
    loss = harness_pass(&g->h, &g->h.batch, scale / (double)counted) / (double)counted;
    for (int u = 0; u < g->h.model->unit_count; u++)
        for (int64_t i = 0; i < g->h.model->units[u].elems; i++)
            g->h.model->grads[u][i] /= (float)scale;
    return loss;
}

/* Compares one gradient with the exact one. Returns its error: relative in fp32, else as a
 * multiple of PyTorch's error. */
static double check_gradient(const golden *g, const char *name, const float *grad,
                             const float *exact, int64_t elems)
{
    double error;

    if (g->bounds->dtype != DT_F32) {
        error = half_ratio(g, name, grad, exact, elems);
        expect_half(name, error);
        return error;
    }
    if (is_nothing(g, name)) {
        for (int64_t i = 0; i < elems; i++)
            assert_true(fabs((double)grad[i]) <= g->bounds->grad_element);
        return 0;
    }
    error = relative_norm(grad, exact, elems);
    expect_close(name, error, g->bounds->grad_norm);
    expect_close(name, worst_element(grad, exact, elems), g->bounds->grad_element);
    return error;
}

static void test_loss_and_every_gradient_are_pytorchs(void **state)
{
    golden *g = *state;
    const double *loss = fixture_get(&g->expect, "loss", "F64", 1);
    double worst = 0;
    int64_t counted;

    load_start(g);
    counted = load_batch(g, 0);
    expect_close("loss", relative(pass(g, counted), *loss), g->bounds->loss);
    for (int p = 0; p < g->h.model->param_count; p++) {
        const dt_param *param = &g->h.model->params[p];
        int64_t elems = published_elems(param);
        const float *grad = harness_grad(&g->h, p);
        char name[80];

        snprintf(name, sizeof name, "grad.%s", param->name);
        worst = fmax(worst, check_gradient(g, name, grad,
                                           fixture_get(&g->expect, name, "F32", elems), elems));
        for (int64_t i = elems; i < param->elems; i++)
            assert_true(grad[i] == 0); /* padding */
    }
    print_message("%s: worst gradient: %.2g\n", dt_dtype_name(g->bounds->dtype), worst);
}

static dt_recipe recipe_of(const golden *g)
{
    dt_recipe recipe = {0};

    recipe.optimizer.lr = fixture_number(&g->start, "lr");
    recipe.schedule.kind = DT_SCHEDULE_COSINE;
    recipe.schedule.steps = g->steps;
    recipe.schedule.warmup_steps = (int64_t)fixture_number(&g->start, "warmup");
    recipe.schedule.min_lr = fixture_number(&g->start, "min_lr");
    recipe.schedule.warmup_init_lr = recipe.schedule.min_lr;
    recipe.schedule.period_mult = 1;
    recipe.schedule.shrink = 0.1;
    return recipe;
}

static double grads_norm(golden *g)
{
    dt_error err = DT_ERROR_INIT;
    double total = 0;

    for (int u = 0; u < g->h.model->unit_count; u++) {
        dt_tensor grads = dt_tensor_1d(g->h.model->grads[u], DT_F32, g->h.model->units[u].elems);
        double squares;

        assert_int_equal(g->h.device.ops->sum_squares(&g->h.device, &squares, &grads, &err), DT_OK);
        total += squares;
    }
    return sqrt(total);
}

static void update(golden *g, float **m, float **v, dt_optimizer_args args, double decay)
{
    for (int p = 0; p < g->h.model->param_count; p++) {
        const dt_param *param = &g->h.model->params[p];
        int64_t offset = param->offset_elems, elems = param->elems;
        dt_optimizer_part part = {
            .param = dt_tensor_1d(harness_value(&g->h, p), DT_F32, elems),
            .grad = dt_tensor_1d(harness_grad(&g->h, p), DT_F32, elems),
            .state = {dt_tensor_1d(m[param->unit] + offset, DT_F32, elems),
                      dt_tensor_1d(v[param->unit] + offset, DT_F32, elems)},
            .states = 2,
        };
        dt_optimizer_factors factors;
        dt_error err = DT_ERROR_INIT;

        args.options.weight_decay = param->decay ? decay : 0;
        dt_optimizer_adamw.factors(&factors, &args);
        assert_int_equal(dt_optimizer_adamw.step(&g->h.device, &part, &factors, &err), DT_OK);
    }
    harness_values_changed(&g->h);
}

static void test_twenty_adamw_losses_are_pytorchs(void **state)
{
    golden *g = *state;
    const double *losses = fixture_get(&g->expect, "losses", "F64", g->steps);
    const double *norms = fixture_get(&g->expect, "norms", "F64", g->steps);
    const double *rates = fixture_get(&g->expect, "rates", "F64", g->steps);
    int units = g->h.model->unit_count;
    float **m = calloc((size_t)units, sizeof *m), **v = calloc((size_t)units, sizeof *v);
    dt_recipe recipe = recipe_of(g);
    double worst = 0;

    for (int u = 0; u < units; u++) {
        m[u] = calloc((size_t)g->h.model->units[u].elems, sizeof **m);
        v[u] = calloc((size_t)g->h.model->units[u].elems, sizeof **v);
    }
    load_start(g);
    for (int64_t step = 0; step < g->steps; step++) {
        int64_t counted = load_batch(g, step);
        dt_optimizer_args args = {.lr = dt_schedule_lr(&recipe, step),
                                  .options = {.beta1 = fixture_number(&g->start, "beta1"),
                                              .beta2 = fixture_number(&g->start, "beta2"),
                                              .eps = fixture_number(&g->start, "eps")},
                                  .step = step + 1};
        double loss, norm;

        loss = pass(g, counted);
        norm = grads_norm(g);
        worst = fmax(worst, relative(loss, losses[step]));
        expect_close("rate", relative(args.lr, rates[step]), 1e-12);
        expect_close("loss of a step", relative(loss, losses[step]), g->bounds->losses);
        expect_close("norm of a step", relative(norm, norms[step]), 10 * g->bounds->losses);
        args.grad_scale = dt_clip_factor(norm, fixture_number(&g->start, "clip"));
        update(g, m, v, args, fixture_number(&g->start, "weight_decay"));
    }
    print_message("%s: worst loss of %lld: %.2g\n", dt_dtype_name(g->bounds->dtype),
                  (long long)g->steps, worst);
    for (int u = 0; u < units; u++) {
        free(m[u]);
        free(v[u]);
    }
    free(m);
    free(v);
}

/* fairseq also computes the table in fp32; sin and cos may differ in the last bit. */
static void test_positions_are_fairseqs(void **state)
{
    golden *g = *state;
    const dt_model_config *config = &g->h.model->config;
    int64_t elems = config->decoder.context * config->decoder.embed;
    const float *expected = fixture_get(&g->expect, "positions", "F32", elems);
    const float *table = harness_state(&g->h)->lasting[DT_GPT2_POSITIONS].data;
    float *row = calloc((size_t)config->decoder.embed, sizeof *row);

    for (int64_t i = 0; i < elems; i++)
        assert_true(fabsf(table[i] - expected[i]) <= 1.2e-7f);
    for (int64_t t = 0; t < config->decoder.context; t++) {
        dt_sinusoids_row(row, 2 + t, config->decoder.embed);
        assert_memory_equal(row, table + t * config->decoder.embed,
                            (size_t)config->decoder.embed * sizeof *row);
    }
    free(row);
}

/* The validation loss has no label smoothing. */
static void test_evaluation_is_without_smoothing(void **state)
{
    golden *g = *state;
    const double *nll = fixture_get(&g->expect, "nll", "F64", 1);
    dt_error err = DT_ERROR_INIT;
    int64_t counted;
    double sum, said;

    load_start(g);
    counted = load_batch(g, 0);
    assert_int_equal(dt_model_evaluate(g->h.model, &g->h.batch, &sum, &said, &err), DT_OK);
    assert_int_equal(said, counted);
    expect_close("nll", relative(sum / (double)counted, *nll), g->bounds->loss);
}

#define GOLDEN(test, which)                                                               \
    {                                                                                     \
#test " (" #which ")", test, open_golden, close_golden, (void *)(uintptr_t)&which \
    }

#define ALL_THREE(which)                                          \
    GOLDEN(test_logits_are_pytorchs, which),                      \
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, which), \
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, which)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GOLDEN(test_logits_are_pytorchs, gpt2_fp32),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, gpt2_fp32),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, gpt2_fp32),
        GOLDEN(test_logits_are_pytorchs, gpt2_bf16),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, gpt2_bf16),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, gpt2_bf16),
        GOLDEN(test_logits_are_pytorchs, gpt2_fp16),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, gpt2_fp16),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, gpt2_fp16),
        GOLDEN(test_positions_are_fairseqs, fairseq_fp32),
        GOLDEN(test_evaluation_is_without_smoothing, post_fp32),
        ALL_THREE(post_fp32),
        ALL_THREE(post_bf16),
        ALL_THREE(post_fp16),
        ALL_THREE(pre_fp32),
        ALL_THREE(pre_bf16),
        ALL_THREE(pre_fp16),
        GOLDEN(test_logits_are_pytorchs, fairseq_fp32),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, fairseq_fp32),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, fairseq_fp32),
        GOLDEN(test_logits_are_pytorchs, fairseq_bf16),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, fairseq_bf16),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, fairseq_bf16),
        GOLDEN(test_logits_are_pytorchs, fairseq_fp16),
        GOLDEN(test_loss_and_every_gradient_are_pytorchs, fairseq_fp16),
        GOLDEN(test_twenty_adamw_losses_are_pytorchs, fairseq_fp16),
        ALL_THREE(llama_fp32),
        ALL_THREE(llama_bf16),
        ALL_THREE(llama_fp16),
        ALL_THREE(qwen2_fp32),
        ALL_THREE(qwen2_bf16),
        ALL_THREE(qwen2_fp16),
        ALL_THREE(qwen3_fp32),
        ALL_THREE(qwen3_bf16),
        ALL_THREE(qwen3_fp16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
