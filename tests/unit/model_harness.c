#include "tests/unit/model_harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/decoder/decoder.h"
#include "engine/ops/ops.h"
#include "engine/philox.h"

static void good(dt_status st, const dt_error *err)
{
    if (st != DT_OK)
        fail_msg("%s: %s", dt_status_name(st), err->message);
}

dt_model_config harness_config(void)
{
    dt_model_config config = {.decoder.layers = 2,
                              .decoder.heads = 3,
                              .decoder.embed = 24,
                              .decoder.vocab = 61,
                              .decoder.vocab_padded = 128,
                              .decoder.context = 16,
                              .batch = 8,
                              .tokens = 11,
                              .dtype = DT_F32};
    return config;
}

static void take(harness *h, void **out, size_t bytes)
{
    dt_error err = DT_ERROR_INIT;

    good(h->device.alloc(&h->device, out, bytes, &err), &err);
}

/* A unit's fp32 values; *weights: these, or memory for a copy in the model's type. */
static float *take_values(harness *h, void **weights, int64_t elems)
{
    dt_dtype dtype = h->model->config.dtype;
    void *memory;

    take(h, &memory, (size_t)elems * sizeof(float));
    if (dtype == DT_F32)
        *weights = memory;
    else
        take(h, weights, (size_t)elems * dt_dtype_bytes(dtype));
    return memory;
}

void harness_open(harness *out, const dt_model_config *config)
{
    dt_error err = DT_ERROR_INIT;
    int64_t rows = config->batch * config->tokens;
    dt_model *model;

    memset(out, 0, sizeof *out);
    good(dt_device_open_cpu(&out->device, 2, &err), &err);
    good(dt_model_open(&out->model, config, &out->device, &err), &err);
    model = out->model;
    out->values = calloc((size_t)model->unit_count, sizeof *out->values);
    out->frozen = calloc((size_t)model->unit_count, sizeof *out->frozen);
    for (int u = 0; u < model->unit_count; u++) {
        out->values[u] = take_values(out, &model->weights[u], model->units[u].elems);
        if (model->units[u].frozen_elems > 0)
            out->frozen[u] = take_values(out, &model->frozen[u], model->units[u].frozen_elems);
        if (!config->inference) {
            void *memory;

            take(out, &memory, (size_t)model->units[u].elems * sizeof(float));
            model->grads[u] = memory;
        }
    }
    out->tokens = calloc((size_t)rows, sizeof *out->tokens);
    out->targets = calloc((size_t)rows, sizeof *out->targets);
    if (config->kind == DT_MODEL_TRANSFORMER)
        out->source = calloc((size_t)rows, sizeof *out->source);
    out->batch = harness_batch(out, 0, config->batch);
}

void harness_close(harness *h)
{
    for (int u = 0; h->model && u < h->model->unit_count; u++) {
        if (h->model->weights[u] != h->values[u])
            h->device.free(&h->device, h->model->weights[u]);
        if (h->model->frozen[u] != h->frozen[u])
            h->device.free(&h->device, h->model->frozen[u]);
        h->device.free(&h->device, h->frozen[u]);
        h->device.free(&h->device, h->values[u]);
        h->device.free(&h->device, h->model->grads[u]);
    }
    free(h->values);
    free(h->frozen);
    free(h->source);
    free(h->tokens);
    free(h->targets);
    dt_model_close(h->model);
    dt_device_close(&h->device);
}

void harness_init(harness *h, uint64_t seed)
{
    for (int p = 0; p < h->model->param_count; p++) {
        const dt_param *param = &h->model->params[p];
        dt_philox_key key = {.seed = seed, .step = (uint32_t)p, .op = DT_PHILOX_SAMPLE};
        float *value = harness_value(h, p);

        dt_model_init_param(value, h->model, p, seed);
        for (int64_t i = 0; param->ndim == 1 && i < param->elems; i++)
            value[i] +=
                0.2f * (dt_philox_uniform(dt_philox_draw(&key, (uint64_t)i).word[0]) - 0.5f);
    }
    harness_values_changed(h);
}

static void copy_values(harness *h, void *weights, float *values, int64_t elems)
{
    dt_tensor value = dt_tensor_1d(values, DT_F32, elems);
    dt_tensor weight = dt_tensor_1d(weights, h->model->config.dtype, elems);
    dt_error err = DT_ERROR_INIT;

    if (weight.data != value.data && elems > 0)
        good(h->device.ops->cast(&h->device, &weight, &value, &err), &err);
}

void harness_values_changed(harness *h)
{
    dt_model *model = h->model;

    for (int u = 0; u < model->unit_count; u++) {
        copy_values(h, model->weights[u], h->values[u], model->units[u].elems);
        copy_values(h, model->frozen[u], h->frozen[u], model->units[u].frozen_elems);
    }
}

void harness_zero_grads(harness *h)
{
    for (int u = 0; u < h->model->unit_count; u++)
        memset(h->model->grads[u], 0, (size_t)h->model->units[u].elems * sizeof(float));
}

int64_t harness_vocab(const harness *h)
{
    return h->model->config.decoder.vocab;
}

/* Sets word i of the source. Row b has b % 3 words less than the maximum; from the fourth row on, a quarter of that. */
static void fill_source(harness *h, int64_t i, uint32_t word)
{
    const dt_model_config *config = &h->model->config;
    int64_t b = i / config->tokens, room = config->tokens - b % 3;
    uint32_t vocab = (uint32_t)config->transformer.source_vocab;
    int32_t pad = (int32_t)config->transformer.pad;

    if (b > 2)
        room = (room + 3) / 4;
    h->source[i] = (int32_t)(word % vocab);
    if (h->source[i] == pad)
        h->source[i] = pad > 0 ? 0 : 1;
    if (i % config->tokens >= room)
        h->source[i] = pad;
}

int64_t harness_fill_batch(harness *h, uint64_t seed)
{
    const dt_model_config *config = &h->model->config;
    dt_philox_key key = {.seed = seed, .op = DT_PHILOX_SAMPLE};
    uint32_t vocab = (uint32_t)harness_vocab(h);
    int64_t counted = 0;

    for (int64_t i = 0; i < config->batch * config->tokens; i++) {
        dt_philox_block draw = dt_philox_draw(&key, (uint64_t)i);

        h->tokens[i] = (int32_t)(draw.word[0] % vocab);
        h->targets[i] = (int32_t)(draw.word[1] % vocab);
        if (draw.word[2] % 5 == 0)
            h->targets[i] = -1;
        counted += h->targets[i] >= 0;
        if (h->source != NULL)
            fill_source(h, i, draw.word[3]);
    }
    return counted;
}

dt_batch harness_batch(const harness *h, int64_t first, int64_t count)
{
    int64_t T = h->model->config.tokens;
    dt_batch batch = {.inputs = {dt_tensor_2d(h->tokens + first * T, DT_I32, count, T),
                                 dt_tensor_2d(h->targets + first * T, DT_I32, count, T)},
                      .seed = 11,
                      .step = 3,
                      .micro_step = 1,
                      .data_rank = 2};

    if (h->source == NULL)
        return batch;
    batch.inputs[DT_TRANSFORMER_TARGETS] = batch.inputs[1];
    batch.inputs[DT_TRANSFORMER_PREVIOUS] = batch.inputs[0];
    batch.inputs[DT_TRANSFORMER_SOURCE] = dt_tensor_2d(h->source + first * T, DT_I32, count, T);
    return batch;
}

float *harness_value(const harness *h, int param)
{
    const dt_param *p = &h->model->params[param];

    return (p->trainable ? h->values : h->frozen)[p->unit] + p->offset_elems;
}

float *harness_grad(const harness *h, int param)
{
    const dt_param *p = &h->model->params[param];

    return h->model->grads[p->unit] + p->offset_elems;
}

int harness_param(const harness *h, const char *name)
{
    for (int p = 0; p < h->model->param_count; p++)
        if (strcmp(h->model->params[p].name, name) == 0)
            return p;
    fail_msg("no parameter '%s'", name);
    return -1;
}

struct dt_decoder *harness_state(const harness *h)
{
    return h->model->state;
}

float *harness_copy_grads(const harness *h, int64_t *elems)
{
    float *copy;

    *elems = 0;
    for (int u = 0; u < h->model->unit_count; u++)
        *elems += h->model->units[u].elems;
    copy = calloc((size_t)*elems, sizeof *copy);
    *elems = 0;
    for (int u = 0; u < h->model->unit_count; u++) {
        memcpy(copy + *elems, h->model->grads[u], (size_t)h->model->units[u].elems * sizeof *copy);
        *elems += h->model->units[u].elems;
    }
    return copy;
}

double harness_pass(harness *h, const dt_batch *batch, double loss_scale)
{
    dt_error err = DT_ERROR_INIT;
    double loss_sum = NAN;

    good(dt_model_pass(h->model, batch, &loss_scale, &err), &err);
    good(dt_model_loss(h->model, batch, &loss_sum, &err), &err);
    return loss_sum;
}

double relative_norm(const float *a, const float *b, int64_t elems)
{
    double difference = 0, norm = 0;

    for (int64_t i = 0; i < elems; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}

/* --- recomputation */

const dt_recompute_kind harness_recompute_kinds[HARNESS_RECOMPUTE_KINDS] = {
    DT_RECOMPUTE_NOTHING, DT_RECOMPUTE_NONE, DT_RECOMPUTE_SELECTIVE, DT_RECOMPUTE_FULL};

int64_t harness_open_filled(harness *h, const dt_model_config *config)
{
    harness_open(h, config);
    harness_init(h, 5);
    return harness_fill_batch(h, 9);
}

static dt_batch first_three(harness *h, int32_t *room)
{
    (void)room;
    return harness_batch(h, 0, 3);
}

void harness_expect_same_bits(dt_model_config config, const char *what, harness_second *second)
{
    static const char *const names[] = {"none", "selective", "full"};
    float *expected = NULL;
    double expected_loss = 0;

    for (size_t k = 0; k < HARNESS_RECOMPUTE_KINDS; k++) {
        int32_t room[HARNESS_ROOM];
        dt_batch other;
        int64_t elems;
        float *grads;
        double loss;
        harness h;

        config.recompute = harness_recompute_kinds[k];
        harness_open_filled(&h, &config);
        other = (second != NULL ? second : first_three)(&h, room);
        other.micro_step++;
        loss = harness_pass(&h, &h.batch, 0.125) + harness_pass(&h, &other, 0.125);
        grads = harness_copy_grads(&h, &elems);
        harness_close(&h);
        if (expected == NULL) {
            expected = grads;
            expected_loss = loss;
            continue;
        }
        if (memcmp(&loss, &expected_loss, sizeof loss) != 0)
            fail_msg("%s, %s: loss %.17g, without recomputation %.17g", what, names[k], loss,
                     expected_loss);
        if (memcmp(grads, expected, (size_t)elems * sizeof *grads) != 0)
            fail_msg("%s, %s: other gradients, by %.3g", what, names[k],
                     relative_norm(grads, expected, elems));
        free(grads);
    }
    free(expected);
}

#define UNITS_MAX 16

typedef struct visitor {
    harness *h;
    void *weights[UNITS_MAX];
    bool open[UNITS_MAX];
    char *calls; /* MAY be NULL */
    size_t size;
} visitor;

static void note(visitor *v, char what, int unit)
{
    size_t n = v->calls != NULL ? strlen(v->calls) : 0;

    if (v->calls == NULL)
        return;
    assert_true(n + 3 <= v->size);
    v->calls[n] = what;
    v->calls[n + 1] = (char)('0' + unit);
    v->calls[n + 2] = '\0';
}

static dt_status bring(void *self, int unit, bool backward, dt_error *err)
{
    visitor *v = self;

    v->open[unit] = true;
    v->h->model->weights[unit] = v->weights[unit];
    note(v, backward ? 'B' : 'b', unit);
    return DT_OK;
}

static dt_status take_away(void *self, int unit, bool backward, dt_error *err)
{
    visitor *v = self;

    assert_true(v->open[unit]);
    v->open[unit] = false;
    v->h->model->weights[unit] = NULL; /* the model must not use a view of it any more */
    note(v, backward ? 'A' : 'a', unit);
    return DT_OK;
}

static dt_status ready(void *self, int unit, dt_error *err)
{
    note(self, 'r', unit);
    return DT_OK;
}

void harness_pass_with_hooks(harness *h, char *calls, size_t size)
{
    size_t bytes = (size_t)h->model->unit_count * sizeof(void *);
    visitor v = {.h = h, .calls = calls, .size = size};
    dt_model_hooks hooks = {
        .self = &v, .before_unit = bring, .after_unit = take_away, .unit_grads_ready = ready};

    assert_true(h->model->unit_count <= UNITS_MAX);
    if (calls != NULL)
        calls[0] = '\0';
    memcpy(v.weights, h->model->weights, bytes);
    memset(h->model->weights, 0, bytes);
    h->model->hooks = &hooks;
    harness_pass(h, &h->batch, 1);
    memcpy(h->model->weights, v.weights, bytes);
    h->model->hooks = NULL;
}

void harness_expect_hooked_weights(dt_model_config config)
{
    for (size_t k = 0; k < HARNESS_RECOMPUTE_KINDS; k++) {
        harness h;

        config.recompute = harness_recompute_kinds[k];
        harness_open_filled(&h, &config);
        harness_pass_with_hooks(&h, NULL, 0);
        harness_close(&h);
    }
}

void harness_expect_full_arena(dt_model_config config)
{
    for (size_t k = 0; k < HARNESS_RECOMPUTE_KINDS; k++) {
        harness h;

        config.recompute = harness_recompute_kinds[k];
        harness_open_filled(&h, &config);
        harness_pass(&h, &h.batch, 1);
        assert_int_equal(harness_state(&h)->arena.used_bytes, h.model->activation_bytes);
        assert_int_equal(h.model->activation_bytes, dt_model_activation_bytes(&config));
        harness_close(&h);
    }
}

void harness_expect_refused(dt_model_config config, const char *part)
{
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(dt_model_config_check(&config, &err), DT_ERR_RECIPE);
    if (!strstr(err.message, part))
        fail_msg("'%s' does not hold '%s'", err.message, part);
    dt_error_clear(&err);
}
