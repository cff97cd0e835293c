/* bench_decode: measures a step of greedy decoding, op by op.
 *
 *     bench_decode [fp32|bf16 [threads [texts [tokens]]]]
 *
 * SmolLM2-135M's shape with random weights, each text continued token by token. Prints the least, the middle and the
 * mean time of a token, the bytes of weights that it reads, then the time of each op. Asserts nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/model/model.h"
#include "engine/ops/ops.h"
#include "tests/ops/watched.h"

typedef struct subject {
    dt_device device;
    dt_model *model;
    int32_t *newest; /* [texts] */
    float *logits;   /* (texts, vocab) */
    dt_tensor tokens;
    double *seconds; /* [tokens] */
    int64_t bytes;   /* of all weights */
} subject;

static dt_status fill(subject *s, dt_error *err)
{
    dt_model *model = s->model;
    dt_dtype dtype = model->config.dtype;
    dt_status st = DT_OK;
    void *wide;

    for (int u = 0; u < model->unit_count; u++) {
        int64_t elems = model->units[u].elems;
        dt_tensor weight, value;

        DT_TRY(s->device.alloc(&s->device, &wide, (size_t)elems * sizeof(float), err));
        for (int p = 0; p < model->param_count; p++)
            if (model->params[p].unit == u)
                dt_model_init_param((float *)wide + model->params[p].offset_elems, model, p, 1);
        DT_TRY(s->device.alloc(&s->device, &model->weights[u],
                               (size_t)elems * dt_dtype_bytes(dtype), err));
        weight = dt_tensor_1d(model->weights[u], dtype, elems);
        value = dt_tensor_1d(wide, DT_F32, elems);
        DT_TRY(s->device.ops->cast(&s->device, &weight, &value, err));
        s->device.free(&s->device, wide);
        s->bytes += elems * (int64_t)dt_dtype_bytes(dtype);
    }
out:
    return st;
}

static dt_status step(subject *s, int64_t texts, dt_error *err)
{
    int64_t vocab = s->model->config.decoder.vocab;
    dt_status st = DT_OK;

    DT_TRY(s->device.copy_in(&s->device, s->tokens.data, s->newest,
                             (size_t)texts * sizeof *s->newest, err));
    DT_TRY(dt_model_extend_each(s->model, &s->tokens, s->logits, err));
    for (int64_t k = 0; k < texts; k++) {
        const float *logits = s->logits + k * vocab;
        int32_t best = 0;

        for (int32_t v = 1; v < (int32_t)vocab; v++)
            best = logits[v] > logits[best] ? v : best;
        s->newest[k] = best;
    }
out:
    return st;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void print_profile(subject *s, int64_t texts, int64_t tokens)
{
    double all = 0;

    for (int64_t i = 0; i < tokens; i++)
        all += s->seconds[i];
    qsort(s->seconds, (size_t)tokens, sizeof *s->seconds, by_size);
    printf("a token of %lld texts: least %.3f ms, middle %.3f, mean %.3f; %.1f MB, %.1f GB/s at "
           "the middle\n",
           (long long)texts, 1e3 * s->seconds[0], 1e3 * s->seconds[tokens / 2],
           1e3 * all / (double)tokens, (double)s->bytes / 1e6,
           (double)s->bytes / s->seconds[tokens / 2] / 1e9);
    for (int i = 0; i < DT_OPS_COUNT; i++)
        if (watched_ops[i].calls > 0)
            printf("%-24s %7.0f calls %9.3f ms %6.1f%%\n", watched_ops[i].name,
                   (double)watched_ops[i].calls / (double)tokens,
                   1e3 * watched_ops[i].seconds / (double)tokens,
                   100 * watched_ops[i].seconds / all);
}

static dt_status bench(const dt_model_config *config, int threads, int64_t tokens, dt_error *err)
{
    static subject s; /* all memory lives until the program ends */
    int64_t texts = config->sequences;
    dt_tensor first;
    dt_status st = DT_OK;
    void *data;

    DT_TRY(dt_device_open_cpu(&s.device, threads, err));
    s.device.ops = watched_table(s.device.ops);
    DT_TRY(dt_model_open(&s.model, config, &s.device, err));
    DT_TRY(fill(&s, err));
    DT_TRY(s.device.alloc(&s.device, &data, (size_t)texts * sizeof *s.newest, err));
    s.tokens = dt_tensor_2d(data, DT_I32, texts, 1);
    s.newest = calloc((size_t)texts, sizeof *s.newest);
    s.logits = calloc((size_t)(texts * config->decoder.vocab), sizeof *s.logits);
    s.seconds = calloc((size_t)tokens, sizeof *s.seconds);
    if (s.newest == NULL || s.logits == NULL || s.seconds == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    for (int64_t k = 0; k < texts; k++) {
        s.newest[k] = (int32_t)(k + 1);
        DT_TRY(s.device.copy_in(&s.device, data, &s.newest[k], sizeof *s.newest, err));
        first = dt_tensor_2d(data, DT_I32, 1, 1);
        DT_TRY(dt_model_extend(s.model, k, &first, s.logits, err));
    }
    for (int i = 0; i < 4; i++)
        DT_TRY(step(&s, texts, err));
    for (int i = 0; i < DT_OPS_COUNT; i++) {
        watched_ops[i].seconds = 0;
        watched_ops[i].calls = 0;
    }
    for (int64_t i = 0; i < tokens; i++) {
        double begun = dt_clock_monotonic_seconds();

        DT_TRY(step(&s, texts, err));
        s.seconds[i] = dt_clock_monotonic_seconds() - begun;
    }
    print_profile(&s, texts, tokens);
    printf("last token %d\n", s.newest[0]);
out:
    return st;
}

int main(int argc, char **argv)
{
    dt_model_config config = {.kind = DT_MODEL_LLAMA,
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
                              .inference = true,
                              .incremental = true,
                              .batch = 1};
    int threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    int64_t texts = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
    int64_t tokens = argc > 4 ? strtol(argv[4], NULL, 10) : 64;
    dt_error err = DT_ERROR_INIT;

    if (argc > 5 || texts < 1 || tokens < 1 || tokens > 1000) {
        fprintf(stderr, "usage: bench_decode [fp32|bf16 [threads [texts [tokens]]]]\n");
        return 2;
    }
    config.tokens = texts > 128 ? texts : 128;
    config.sequences = texts;
    config.kept = tokens + 16;
    config.dtype = argc > 1 && strcmp(argv[1], "bf16") == 0 ? DT_BF16 : DT_F32;
    if (bench(&config, threads, tokens, &err)) {
        fprintf(stderr, "bench_decode: %s\n", err.message);
        return 1;
    }
    return 0;
}
