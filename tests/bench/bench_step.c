/* bench_step: measures where the time of a training step goes, op by op.
 *
 *     bench_step char|124m|135m [fp32|bf16 [threads [steps]]]
 *
 * A step is forward, backward, gradient norm and AdamW over random tokens in one process. Every op
 * of the device's table is replaced by one that times it. Prints a line per op (calls and
 * milliseconds a step, share of the step), then tokens/s and the FLOP rate by
 * dt_model_flops_per_token; asserts nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/model/model.h"
#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"
#include "tests/ops/watched.h"

typedef struct storage {
    void *weights, *values, *m, *v; /* in fp32 the weights are the values themselves */
} storage;

typedef struct subject {
    dt_device device;
    dt_model *model;
    storage units[64];
    dt_batch batch;
} subject;

static dt_status take(subject *s, void **out, int64_t elems, size_t elem_bytes, dt_error *err)
{
    return s->device.alloc(&s->device, out, (size_t)elems * elem_bytes, err);
}

static dt_status fill(subject *s, dt_error *err)
{
    dt_model *model = s->model;
    dt_dtype dtype = model->config.dtype;
    dt_status st = DT_OK;

    for (int u = 0; u < model->unit_count; u++) {
        int64_t elems = model->units[u].elems;
        storage *unit = &s->units[u];
        void *grads;

        DT_TRY(take(s, &unit->values, elems, sizeof(float), err));
        DT_TRY(take(s, &unit->m, elems, sizeof(float), err));
        DT_TRY(take(s, &unit->v, elems, sizeof(float), err));
        DT_TRY(take(s, &grads, elems, sizeof(float), err));
        model->grads[u] = grads;
        unit->weights = unit->values;
        if (dtype != DT_F32)
            DT_TRY(take(s, &unit->weights, elems, dt_dtype_bytes(dtype), err));
        model->weights[u] = unit->weights;
    }
    for (int p = 0; p < model->param_count; p++) {
        const dt_param *param = &model->params[p];
        float *value = s->units[param->unit].values;

        dt_model_init_param(value + param->offset_elems, model, p, 1);
    }
    for (int u = 0; u < model->unit_count && dtype != DT_F32; u++) {
        dt_tensor weight = dt_tensor_1d(s->units[u].weights, dtype, model->units[u].elems);
        dt_tensor value = dt_tensor_1d(s->units[u].values, DT_F32, model->units[u].elems);

        DT_TRY(s->device.ops->cast(&s->device, &weight, &value, err));
    }
out:
    return st;
}

static dt_status fill_batch(subject *s, dt_error *err)
{
    const dt_model_config *config = &s->model->config;
    int64_t B = config->batch, T = config->tokens;
    dt_philox_key key = {.seed = 1, .op = DT_PHILOX_SAMPLE};
    void *tokens, *targets;
    dt_model_text text;
    dt_status st = DT_OK;

    DT_TRY(dt_model_text_of(&text, s->model, err));
    DT_TRY(take(s, &tokens, B * T, sizeof(int32_t), err));
    DT_TRY(take(s, &targets, B * T, sizeof(int32_t), err));
    for (int64_t i = 0; i < B * T; i++) {
        dt_philox_block draw = dt_philox_draw(&key, (uint64_t)i);

        ((int32_t *)tokens)[i] = (int32_t)(draw.word[0] % (uint32_t)text.vocab);
        ((int32_t *)targets)[i] = (int32_t)(draw.word[1] % (uint32_t)text.vocab);
    }
    s->batch.inputs[0] = dt_tensor_2d(tokens, DT_I32, B, T);
    s->batch.inputs[1] = dt_tensor_2d(targets, DT_I32, B, T);
out:
    return st;
}

static dt_status run_step(subject *s, int64_t step, double *loss, dt_error *err)
{
    dt_model *model = s->model;
    const dt_ops *ops = s->device.ops;
    double scale = 1.0 / (double)(model->config.batch * model->config.tokens), squares;
    dt_optimizer_args args = {
        .options = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
        .lr = 1e-4,
        .step = step,
        .grad_scale = 1};
    dt_optimizer_factors factors;
    dt_status st = DT_OK;

    dt_optimizer_adamw.factors(&factors, &args);
    for (int u = 0; u < model->unit_count; u++) {
        dt_tensor grads = dt_tensor_1d(model->grads[u], DT_F32, model->units[u].elems);

        DT_TRY(ops->zero(&s->device, &grads, err));
    }
    DT_TRY(dt_model_pass(model, &s->batch, &scale, err));
    DT_TRY(dt_model_loss(model, &s->batch, loss, err));
    *loss *= scale;
    for (int u = 0; u < model->unit_count; u++) {
        int64_t elems = model->units[u].elems;
        dt_tensor grads = dt_tensor_1d(model->grads[u], DT_F32, elems);
        dt_optimizer_part part = {
            .param = dt_tensor_1d(s->units[u].values, DT_F32, elems),
            .grad = grads,
            .copy = dt_tensor_1d(NULL, model->config.dtype, elems),
            .state = {dt_tensor_1d(s->units[u].m, DT_F32, elems),
                      dt_tensor_1d(s->units[u].v, DT_F32, elems)},
            .states = 2,
        };

        if (model->config.dtype != DT_F32)
            part.copy.data = s->units[u].weights;
        DT_TRY(ops->sum_squares(&s->device, &squares, &grads, err));
        DT_TRY(dt_optimizer_adamw.step(&s->device, &part, &factors, err));
    }
out:
    return st;
}

static void print_profile(const dt_model *model, double seconds, long steps)
{
    const dt_model_config *config = &model->config;
    double tokens = (double)(config->batch * config->tokens) * (double)steps, inside = 0;
    double flops = dt_model_flops_per_token(config) * tokens;

    printf("%-24s %7s %10s %7s\n", "op", "calls", "ms", "share");
    for (int i = 0; i < DT_OPS_COUNT; i++) {
        if (watched_ops[i].calls == 0)
            continue;
        inside += watched_ops[i].seconds;
        printf("%-24s %7.0f %10.3f %6.1f%%\n", watched_ops[i].name,
               (double)watched_ops[i].calls / (double)steps,
               1e3 * watched_ops[i].seconds / (double)steps,
               100 * watched_ops[i].seconds / seconds);
    }
    printf("%-24s %7s %10.3f %6.1f%%\n", "outside ops", "",
           1e3 * (seconds - inside) / (double)steps, 100 * (seconds - inside) / seconds);
    printf(
        "step %.3f ms, %.0f tokens/s, %.3g FLOP/s (6 N + 12 L C T a token), activations %.1f MB\n",
        1e3 * seconds / (double)steps, tokens / seconds, flops / seconds,
        (double)model->activation_bytes / 1e6);
}

static dt_status bench(const dt_model_config *config, int threads, long steps, dt_error *err)
{
    static subject s; /* all memory lives until the program ends */
    double start, loss;
    dt_status st = DT_OK;

    DT_TRY(dt_device_open_cpu(&s.device, threads, err));
    s.device.ops = watched_table(s.device.ops);
    DT_TRY(dt_model_open(&s.model, config, &s.device, err));
    DT_TRY(fill(&s, err));
    DT_TRY(fill_batch(&s, err));
    for (int64_t step = 1; step <= 2; step++) /* the first step prepares the products */
        DT_TRY(run_step(&s, step, &loss, err));
    for (int i = 0; i < DT_OPS_COUNT; i++) {
        watched_ops[i].seconds = 0;
        watched_ops[i].calls = 0;
    }
    start = dt_clock_monotonic_seconds();
    for (long step = 0; step < steps; step++)
        DT_TRY(run_step(&s, 3 + step, &loss, err));
    print_profile(s.model, dt_clock_monotonic_seconds() - start, steps);
    printf("loss %.4f\n", loss);
out:
    return st;
}

int main(int argc, char **argv)
{
    dt_model_config character = {.decoder.layers = 4,
                                 .decoder.heads = 4,
                                 .decoder.embed = 128,
                                 .decoder.vocab = 65,
                                 .decoder.vocab_padded = 128,
                                 .decoder.context = 64,
                                 .batch = 12,
                                 .tokens = 64};
    dt_model_config small = {.decoder.layers = 12,
                             .decoder.heads = 12,
                             .decoder.embed = 768,
                             .decoder.vocab = 50257,
                             .decoder.vocab_padded = 50304,
                             .decoder.context = 1024,
                             .batch = 4,
                             .tokens = 1024};
    dt_model_config smollm2 = {.kind = DT_MODEL_LLAMA,
                               .decoder = {.layers = 30,
                                           .heads = 9,
                                           .embed = 576,
                                           .vocab = 49152,
                                           .vocab_padded = 49152,
                                           .context = 1024},
                               .llama = {.kv_heads = 3,
                                         .head_width = 64,
                                         .ffn = 1536,
                                         .norm_eps = 1e-5,
                                         .rope_theta = 100000,
                                         .rope_factor = 1},
                               .batch = 4,
                               .tokens = 1024};
    const char *model = argc > 1 ? argv[1] : "";
    dt_model_config config = strcmp(model, "135m") == 0   ? smollm2
                             : strcmp(model, "124m") == 0 ? small
                                                          : character;
    long steps = argc > 4 ? strtol(argv[4], NULL, 10) : config.tokens == 64 ? 100 : 3;
    int threads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    dt_error err = DT_ERROR_INIT;

    if (argc < 2 || argc > 5 || steps < 1) {
        fprintf(stderr, "usage: bench_step char|124m|135m [fp32|bf16 [threads [steps]]]\n");
        return 2;
    }
    config.dtype = argc > 2 && strcmp(argv[2], "bf16") == 0 ? DT_BF16 : DT_F32;
    if (bench(&config, threads, steps, &err)) {
        fprintf(stderr, "bench_step: %s\n", err.message);
        return 1;
    }
    return 0;
}
