/* bench_ops: measures what each op costs on this machine, at the sizes of two models.
 *
 *     bench_ops [threads|cuda:N [fp32|bf16|fp16|all [what the name of an op begins with [quick]]]]
 *
 * The default is all types and ops. Columns: the op, its shape, milliseconds of a run,
 * GB/s of the bytes that it must move (each operand once), GFLOP/s of the products that it must do.
 * Products are those that the engine runs: with bias, sums of it, GELU, and the head's chunk. quick:
 * on a card, a tiny model, to try the program. Prints, asserts nothing.
 *
 * CPU    the median of runs
 * Cards  the median of series of runs, each between two waits for the device, so that neither
 *        launches nor gaps count; two sets of buffers in turn (flat ones: all 12 blocks), so that
 *        what one run reads is not in the cache from the one before
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/ops/list.h"
#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"

typedef struct model_size {
    const char *name;
    bool card; /* true: for cards; false: for the CPU */
    int64_t b, t, c, heads, vocab, padded,
        head_rows;  /* the head's logits, this many rows at a time */
    int64_t blocks; /* number of blocks whose parameters a flat buffer has */
    size_t capacity;
    bool quick;
} model_size;

static const model_size sizes[] = {
    {"char GPT", false, 12, 64, 128, 4, 65, 128, 768, 1, (size_t)64 << 20, false},
    {"GPT-2 124M", false, 4, 1024, 768, 12, 50257, 50304, 1024, 1, (size_t)2 << 30, false},
    {"GPT-2 124M, a token of 1 text", false, 1, 1, 768, 12, 50257, 50304, 1, 1, (size_t)1 << 30,
     false},
    {"GPT-2 124M, tokens of 16 texts", false, 16, 1, 768, 12, 50257, 50304, 16, 1, (size_t)1 << 30,
     false},
    {"GPT-2 124M", true, 32, 1024, 768, 12, 50257, 50304, 2432, 12, (size_t)8 << 30, false},
    {"tiny", true, 2, 32, 128, 2, 97, 128, 64, 1, (size_t)32 << 20, true},
};

#define BLOCK_BUFFERS 7

/* The tensors of one block and of the head. */
typedef struct subject {
    dt_device device;
    const model_size *size;
    dt_dtype act;
    int64_t n;
    dt_tensor tokens, head_targets;
    dt_tensor x, y, z, qkv, dqkv, wide, wide2, logits, head_x, losses, mean, rstd, lse;
    dt_tensor w[4], dw, db, vector, wte, wpe, dwte, dwpe;
    dt_tensor param, states[2], grad, copy;
    dt_tensor bias[4], no_bias;
    dt_tensor others
        [BLOCK_BUFFERS]; /* on cards: buffers as large as those of the block, used in turn with them */
    dt_optimizer_factors *factors;
    double *loss_scale;
    dt_status fill; /* elements of the tensors so far */
    dt_error err;
} subject;

typedef struct cost {
    double bytes, flops;
    int64_t rows, inputs, outputs;
} cost;

/* Function that a row of the table runs; i distinguishes the shapes of one op. */
typedef dt_status run_op(subject *s, int i, cost *cost);

static double bytes_of(const dt_tensor *x)
{
    return (double)dt_tensor_bytes(x);
}

/* --- linear layers --- */

static void linear(subject *s, int i, const dt_tensor **x, const dt_tensor **w, dt_tensor **y,
                   cost *c)
{
    dt_tensor *inputs[] = {&s->x, &s->x, &s->x, &s->wide, &s->head_x};
    dt_tensor *outputs[] = {&s->qkv, &s->y, &s->wide, &s->y, &s->logits};

    *x = inputs[i];
    *y = outputs[i];
    *w = i < 4 ? &s->w[i] : &s->wte;
    c->rows = dt_tensor_rows(*x);
    c->inputs = dt_tensor_cols(*x);
    c->outputs = dt_tensor_cols(*y);
    c->bytes = bytes_of(*x) + bytes_of(*w) + bytes_of(*y);
    c->flops = 2.0 * (double)c->rows * (double)c->inputs * (double)c->outputs;
}

static dt_status matmul_forward(subject *s, int i, cost *c)
{
    const dt_tensor *x, *w;
    dt_tensor *y;

    linear(s, i, &x, &w, &y, c);
    return s->device.ops->matmul_forward(&s->device, y, x, w, i < 4 ? &s->bias[i] : &s->no_bias,
                                         &s->err);
}

/* fc, and the product after it */
static dt_status matmul_gelu_forward(subject *s, int i, cost *c)
{
    const dt_tensor *x, *w;
    dt_tensor *pre;

    linear(s, 2, &x, &w, &pre, c);
    c->bytes += bytes_of(pre);
    return s->device.ops->matmul_gelu_forward(&s->device, &s->wide2, pre, x, w, &s->bias[2],
                                              &s->err);
}

static dt_status matmul_residual_forward(subject *s, int i, cost *c)
{
    const dt_tensor *x, *w;
    dt_tensor *y;

    linear(s, 3, &x, &w, &y, c);
    c->bytes += bytes_of(y);
    return s->device.ops->matmul_residual_forward(&s->device, y, &s->z, x, w, &s->bias[3], &s->err);
}

static dt_status matmul_gelu_backward(subject *s, int i, cost *c)
{
    const dt_tensor *pre, *w;
    dt_tensor *dy;

    linear(s, 3, &pre, &w, &dy, c);
    c->bytes += bytes_of(pre);
    return s->device.ops->matmul_gelu_backward(&s->device, &s->wide2, dy, w, pre, &s->err);
}

static dt_status matmul_backward_input(subject *s, int i, cost *c)
{
    const dt_tensor *x, *w;
    dt_tensor *y;

    linear(s, i, &x, &w, &y, c);
    return s->device.ops->matmul_backward_input(&s->device, (dt_tensor *)(uintptr_t)x, y, w,
                                                &s->err);
}

static dt_status matmul_backward_weight(subject *s, int i, cost *c)
{
    const dt_tensor *x, *w;
    dt_tensor *y, dw = i < 4 ? s->dw : s->dwte, dbias;

    linear(s, i, &x, &w, &y, c);
    dw.ndim = 2;
    dw.dim[0] = c->outputs;
    dw.dim[1] = c->inputs;
    c->bytes += 2.0 * bytes_of(&dw) - bytes_of(w);
    dbias = dt_tensor_1d(s->db.data, DT_F32, c->outputs);
    return s->device.ops->matmul_backward_weight(&s->device, &dw, i < 4 ? &dbias : &s->no_bias, y,
                                                 x, &s->err);
}

/* --- the rest of a block --- */

/* i == 1: with dropout */
static dt_status attention_forward(subject *s, int i, cost *c)
{
    const dt_philox_key key = {.seed = 1};
    const dt_attention_args args = {.mask = DT_MASK_CAUSAL, .p = i == 1 ? 0.1 : 0.0, .key = &key};
    const dt_qkv x = dt_qkv_packed(&s->qkv, s->size->heads);

    c->bytes = bytes_of(&s->qkv) + bytes_of(&s->y);
    c->flops = 2.0 * (double)s->n * (double)s->size->t *
               (double)s->size->c; /* causal attention has half of the 4 */
    return s->device.ops->attention_forward(&s->device, &s->y, &s->lse, &x, &args, &s->err);
}

static dt_status attention_backward(subject *s, int i, cost *c)
{
    const dt_philox_key key = {.seed = 1};
    const dt_attention_args args = {.mask = DT_MASK_CAUSAL, .p = i == 1 ? 0.1 : 0.0, .key = &key};
    const dt_qkv x = dt_qkv_packed(&s->qkv, s->size->heads);
    const dt_qkv dx = dt_qkv_packed(&s->dqkv, s->size->heads);

    c->bytes = 2.0 * (bytes_of(&s->qkv) + bytes_of(&s->y));
    c->flops = 5.0 * (double)s->n * (double)s->size->t * (double)s->size->c;
    return s->device.ops->attention_backward(&s->device, &dx, &s->x, &x, &s->y, &s->lse, &args,
                                             &s->err);
}

static dt_status attention_backward_bias(subject *s, int i, cost *c)
{
    const dt_attention_args args = {.mask = DT_MASK_CAUSAL};
    const dt_qkv x = dt_qkv_packed(&s->qkv, s->size->heads);
    const dt_qkv dx = dt_qkv_packed(&s->dqkv, s->size->heads);
    dt_tensor db = dt_tensor_1d(s->db.data, DT_F32, 3 * s->size->c);

    c->bytes = 2.0 * (bytes_of(&s->qkv) + bytes_of(&s->y));
    c->flops = 5.0 * (double)s->n * (double)s->size->t * (double)s->size->c;
    return s->device.ops->attention_backward_bias(&s->device, &dx, &db, &s->x, &x, &s->y, &s->lse,
                                                  &args, &s->err);
}

static dt_status layernorm_forward(subject *s, int i, cost *c)
{
    c->bytes = 2.0 * bytes_of(&s->x);
    return s->device.ops->layernorm_forward(&s->device, &s->y, &s->mean, &s->rstd, &s->x,
                                            &s->vector, &s->vector, 1e-5, &s->err);
}

static dt_status layernorm_backward(subject *s, int i, cost *c)
{
    int64_t width = s->size->c;
    dt_tensor dw = dt_tensor_1d(s->db.data, DT_F32, width);
    dt_tensor db = dt_tensor_1d((float *)s->db.data + width, DT_F32, width);

    c->bytes = 4.0 * bytes_of(&s->x);
    return s->device.ops->layernorm_backward(&s->device, &s->z, &dw, &db, &s->y, &s->x, &s->mean,
                                             &s->rstd, &s->vector, &s->err);
}

static dt_status layernorm_backward_bias(subject *s, int i, cost *c)
{
    int64_t width = s->size->c;
    dt_tensor dw = dt_tensor_1d(s->db.data, DT_F32, width);
    dt_tensor db = dt_tensor_1d((float *)s->db.data + width, DT_F32, width);
    dt_tensor sum = dt_tensor_1d((float *)s->db.data + 2 * width, DT_F32, width);

    c->bytes = 4.0 * bytes_of(&s->x);
    return s->device.ops->layernorm_backward_bias(&s->device, &s->z, &dw, &db, &sum, &s->y, &s->x,
                                                  &s->mean, &s->rstd, &s->vector, &s->err);
}

static dt_status activation_forward(subject *s, int i, cost *c)
{
    c->bytes = 2.0 * bytes_of(&s->wide);
    return s->device.ops->activation_forward(&s->device, &s->wide2, &s->wide,
                                             DT_ACTIVATION_GELU_TANH, &s->err);
}

static dt_status activation_backward(subject *s, int i, cost *c)
{
    c->bytes = 3.0 * bytes_of(&s->wide);
    return s->device.ops->activation_backward(&s->device, &s->wide2, &s->wide, &s->wide,
                                              DT_ACTIVATION_GELU_TANH, &s->err);
}

static dt_status dropout_forward(subject *s, int i, cost *c)
{
    const dt_philox_key key = {.seed = 1};

    c->bytes = 2.0 * bytes_of(&s->x);
    return s->device.ops->dropout_forward(&s->device, &s->y, &s->x, 0.1, &key, &s->err);
}

static dt_status residual_forward(subject *s, int i, cost *c)
{
    c->bytes = 3.0 * bytes_of(&s->x);
    return s->device.ops->residual_forward(&s->device, &s->z, &s->x, &s->y, &s->err);
}

/* --- ends of the model --- */

static dt_status embedding_forward(subject *s, int i, cost *c)
{
    c->bytes = 2.0 * bytes_of(&s->x);
    return s->device.ops->embedding_forward(&s->device, &s->x, &s->tokens, &s->wte, &s->wpe, 1,
                                            NULL, &s->err);
}

static dt_status embedding_backward(subject *s, int i, cost *c)
{
    c->bytes = bytes_of(&s->x) * (1.0 + 16.0 / (double)dt_dtype_bytes(s->act));
    return s->device.ops->embedding_backward(&s->device, &s->dwte, &s->dwpe, &s->x, &s->tokens, 1,
                                             NULL, &s->err);
}

static dt_status cross_entropy_forward(subject *s, int i, cost *c)
{
    c->bytes = bytes_of(&s->logits);
    return s->device.ops->cross_entropy_forward(&s->device, &s->losses, &s->logits,
                                                &s->head_targets, NULL, s->size->vocab, &s->err);
}

static dt_status cross_entropy_backward(subject *s, int i, cost *c)
{
    c->bytes = 2.0 * bytes_of(&s->logits);
    return s->device.ops->cross_entropy_backward(&s->device, &s->losses, &s->logits,
                                                 &s->head_targets, NULL, s->size->vocab,
                                                 s->loss_scale, 0, &s->err);
}

/* --- flat buffers, of one block's parameters --- */

static dt_status optimizer_step(subject *s, int i, cost *c)
{
    c->bytes = 7.0 * bytes_of(&s->param) + bytes_of(&s->copy);
    return s->device.ops->optimizer_step(&s->device, DT_RULE_ADAM, &s->param, &s->copy, s->states,
                                         &s->grad, s->factors, &s->err);
}

static dt_status sum_squares(subject *s, int i, cost *c)
{
    double sum;

    c->bytes = bytes_of(&s->grad);
    return s->device.ops->sum_squares(&s->device, &sum, &s->grad, &s->err);
}

static dt_status cast(subject *s, int i, cost *c)
{
    c->bytes = bytes_of(&s->param) + bytes_of(&s->copy);
    return s->device.ops->cast(&s->device, &s->copy, &s->param, &s->err);
}

/* Casts to the same type: shows the rate of the device's memory. */
static dt_status copy(subject *s, int i, cost *c)
{
    c->bytes = bytes_of(&s->param) + bytes_of(&s->grad);
    return s->device.ops->cast(&s->device, &s->param, &s->grad, &s->err);
}

static dt_status zero(subject *s, int i, cost *c)
{
    c->bytes = bytes_of(&s->grad);
    return s->device.ops->zero(&s->device, &s->grad, &s->err);
}

#define ROW(op, shapes) \
    {                   \
#op, op, shapes \
    }
static const struct {
    const char *name;
    run_op *run;
    int shapes;
} rows[] = {
    ROW(embedding_forward, 1),
    ROW(embedding_backward, 1),
    ROW(layernorm_forward, 1),
    ROW(layernorm_backward, 1),
    ROW(layernorm_backward_bias, 1),
    ROW(matmul_forward, 5),
    ROW(matmul_backward_input, 5),
    ROW(matmul_backward_weight, 5),
    ROW(matmul_gelu_forward, 1),
    ROW(matmul_gelu_backward, 1),
    ROW(matmul_residual_forward, 1),
    ROW(attention_forward, 2),
    ROW(attention_backward, 2),
    ROW(attention_backward_bias, 1),
    ROW(activation_forward, 1),
    ROW(activation_backward, 1),
    ROW(dropout_forward, 1),
    ROW(residual_forward, 1),
    ROW(cross_entropy_forward, 1),
    ROW(cross_entropy_backward, 1),
    ROW(optimizer_step, 1),
    ROW(sum_squares, 1),
    ROW(cast, 1),
    ROW(copy, 1),
    ROW(zero, 1),
};

/* --- set-up and timing --- */

/* Returns element i of a tensor, small enough that products of it have ordinary sizes. */
static void put(void *data, dt_dtype dtype, int64_t i)
{
    int64_t number = (i * 7919) % 1021;
    float value = (float)number / 4096.0f - 0.125f;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (dtype == DT_F32)
        ((float *)data)[i] = value;
    else if (dtype == DT_BF16)
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    else if (dtype == DT_F16) /* 1/8 to 1/4, of either sign */
        ((uint16_t *)data)[i] = (uint16_t)(0x3000 | number | (number & 1) << 15);
    else
        ((int32_t *)data)[i] = (int32_t)((i * 7919) % 61);
}

#define PIECE_ELEMS ((int64_t)1021 * 4096) /* a multiple of put()'s period of 1021 */

/* Writes equal pieces, through the host, because a card may have its own memory. Tokens repeat with
 * the pieces too. */
static dt_tensor tensor_new(subject *s, dt_device_arena *arena, dt_dtype dtype, int64_t a,
                            int64_t b, int64_t c)
{
    dt_tensor x = dt_tensor_3d(NULL, dtype, a, b, c);
    int64_t elems = dt_tensor_elems(&x), piece = elems < PIECE_ELEMS ? elems : PIECE_ELEMS;
    size_t elem_bytes = dt_dtype_bytes(dtype);
    void *host = malloc((size_t)piece * elem_bytes);

    x.data = dt_device_arena_take(arena, dt_tensor_bytes(&x));
    if (host == NULL) {
        s->fill = DT_FAIL(&s->err, DT_ERR_NOMEM, "no memory for the numbers of a tensor");
        return x;
    }
    for (int64_t i = 0; i < piece; i++)
        put(host, dtype, i);
    for (int64_t at = 0; at < elems && s->fill == DT_OK; at += piece) {
        int64_t count = elems - at < piece ? elems - at : piece;

        s->fill = s->device.copy_in(&s->device, (unsigned char *)x.data + (size_t)at * elem_bytes,
                                    host, (size_t)count * elem_bytes, &s->err);
    }
    free(host);
    return x;
}

static dt_status fill_factors(subject *s, dt_device_arena *arena)
{
    const dt_optimizer_args args = {
        .options = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
        .lr = 1e-4,
        .step = 10,
        .grad_scale = 1};
    dt_optimizer_factors factors;

    dt_optimizer_adamw.factors(&factors, &args);
    s->factors = dt_device_arena_take(arena, sizeof(factors));
    return s->device.copy_in(&s->device, s->factors, &factors, sizeof(factors), &s->err);
}

static dt_status fill_loss_scale(subject *s, dt_device_arena *arena)
{
    const double scale = 1e-3;

    s->loss_scale = dt_device_arena_take(arena, sizeof(scale));
    return s->device.copy_in(&s->device, s->loss_scale, &scale, sizeof(scale), &s->err);
}

static dt_tensor *block_buffer(subject *s, int i)
{
    dt_tensor *all[BLOCK_BUFFERS] = {&s->x, &s->y, &s->z, &s->qkv, &s->dqkv, &s->wide, &s->wide2};

    return all[i];
}

static void swap_buffers(subject *s)
{
    for (int i = 0; s->size->card && i < BLOCK_BUFFERS; i++) {
        dt_tensor *one = block_buffer(s, i), held = *one;

        *one = s->others[i];
        s->others[i] = held;
    }
}

static dt_status subject_fill(subject *s, dt_device_arena *arena)
{
    const model_size *z = s->size;
    int64_t b = z->b, t = z->t, c = z->c, params = z->blocks * 12 * c * c;
    const int64_t out[] = {3 * c, c, 4 * c, c}, in[] = {c, c, c, 4 * c};

    s->n = b * t;
    s->tokens = tensor_new(s, arena, DT_I32, 1, b, t);
    s->head_targets = tensor_new(s, arena, DT_I32, 1, 1, z->head_rows);
    s->x = tensor_new(s, arena, s->act, b, t, c);
    s->y = tensor_new(s, arena, s->act, b, t, c);
    s->z = tensor_new(s, arena, s->act, b, t, c);
    s->qkv = tensor_new(s, arena, s->act, b, t, 3 * c);
    s->dqkv = tensor_new(s, arena, s->act, b, t, 3 * c);
    s->wide = tensor_new(s, arena, s->act, b, t, 4 * c);
    s->wide2 = tensor_new(s, arena, s->act, b, t, 4 * c);
    s->head_x = tensor_new(s, arena, s->act, 1, z->head_rows, c);
    s->logits = tensor_new(s, arena, s->act, 1, z->head_rows, z->padded);
    s->losses = tensor_new(s, arena, DT_F32, 1, 1, z->head_rows);
    s->mean = tensor_new(s, arena, DT_F32, 1, 1, s->n);
    s->rstd = tensor_new(s, arena, DT_F32, 1, 1, s->n);
    s->lse = tensor_new(s, arena, DT_F32, b, z->heads, t);
    for (int i = 0; i < 4; i++)
        s->w[i] = tensor_new(s, arena, s->act, 1, out[i], in[i]);
    s->dw = tensor_new(s, arena, DT_F32, 1, 4 * c, c);
    s->db = tensor_new(s, arena, DT_F32, 1, 1, 4 * c);
    for (int i = 0; i < 4; i++) {
        s->bias[i] = tensor_new(s, arena, s->act, 1, 1, out[i]);
        s->bias[i] = dt_tensor_1d(s->bias[i].data, s->act, out[i]);
    }
    for (int i = 0; z->card && i < BLOCK_BUFFERS; i++)
        s->others[i] = tensor_new(s, arena, s->act, b, t, block_buffer(s, i)->dim[2]);
    s->vector = tensor_new(s, arena, s->act, 1, 1, c);
    s->wte = tensor_new(s, arena, s->act, 1, z->padded, c);
    s->wpe = tensor_new(s, arena, s->act, 1, t, c);
    s->dwte = tensor_new(s, arena, DT_F32, 1, z->padded, c);
    s->dwpe = tensor_new(s, arena, DT_F32, 1, t, c);
    s->param = tensor_new(s, arena, DT_F32, 1, 1, params);
    s->states[0] = tensor_new(s, arena, DT_F32, 1, 1, params);
    s->states[1] = tensor_new(s, arena, DT_F32, 1, 1, params);
    s->grad = tensor_new(s, arena, DT_F32, 1, 1, params);
    s->copy = tensor_new(s, arena, s->act, 1, 1, params);
    if (s->fill == DT_OK)
        s->fill = fill_factors(s, arena);
    return s->fill == DT_OK ? fill_loss_scale(s, arena) : s->fill;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define RUNS_MAX       51
#define CARD_WARM_RUNS 3 /* the first runs choose algorithms, for both sets of buffers */

/* Returns the seconds of `runs` runs one after the other, measured by the device. */
static dt_status train(subject *s, run_op *run, int i, cost *c, int runs, double *seconds)
{
    double start;
    dt_status st = DT_OK;

    DT_TRY(s->device.synchronize(&s->device, &s->err));
    start = dt_clock_monotonic_seconds();
    for (int r = 0; r < runs; r++) {
        DT_TRY(run(s, i, c));
        swap_buffers(s);
    }
    DT_TRY(s->device.synchronize(&s->device, &s->err));
    *seconds = dt_clock_monotonic_seconds() - start;
out:
    return st;
}

/* Returns the median time of a run, over up to RUNS_MAX series within about half a second, after
 * one that is not counted. On cards a series has as many runs as take some 5 ms. */
static dt_status measure(subject *s, run_op *run, int i, cost *c, double *seconds)
{
    double times[RUNS_MAX], begin, once = 0;
    int count = 0, runs = 1;
    dt_status st = DT_OK;

    DT_TRY(train(s, run, i, c, 1, &once));
    if (s->size->card) {
        DT_TRY(train(s, run, i, c, CARD_WARM_RUNS, &once));
        DT_TRY(train(s, run, i, c, 1, &once));
        runs = once < 5e-3 ? (int)(5e-3 / (once > 1e-6 ? once : 1e-6)) + 1 : 1;
    }
    begin = dt_clock_monotonic_seconds();
    while (count < RUNS_MAX && (count < 3 || dt_clock_monotonic_seconds() - begin < 0.5)) {
        DT_TRY(train(s, run, i, c, runs, &times[count]));
        times[count++] /= runs;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    *seconds = times[count / 2];
out:
    return st;
}

/* Returns whether the backend has this op. */
static bool has(const dt_ops *ops, const char *name)
{
#define ONE(op)                 \
    if (strcmp(name, #op) == 0) \
        return ops->op != NULL;
    DT_OPS_FUSED(ONE)
#undef ONE
    return true;
}

/* Runs the rows whose name begins with `only`. */
static dt_status bench(subject *s, const char *only)
{
    dt_status st = DT_OK;

    printf("\n%s, %s, B %lld T %lld C %lld, %s, %d threads\n", s->size->name, dt_dtype_name(s->act),
           (long long)s->size->b, (long long)s->size->t, (long long)s->size->c, s->device.name,
           s->device.threads);
    printf("%-24s %-18s %10s %10s %10s\n", "op", "rows, in, out", "ms", "GB/s", "GFLOP/s");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (!has(s->device.ops, rows[r].name))
            continue;
        for (int i = 0; i < rows[r].shapes && strncmp(rows[r].name, only, strlen(only)) == 0; i++) {
            cost c = {0};
            char shape[64] = "", flops[32] = "";
            double seconds;

            DT_TRY(measure(s, rows[r].run, i, &c, &seconds));
            if (c.rows > 0)
                snprintf(shape, sizeof shape, "%lld, %lld, %lld", (long long)c.rows,
                         (long long)c.inputs, (long long)c.outputs);
            if (c.flops > 0.0)
                snprintf(flops, sizeof flops, "%.1f", c.flops / seconds / 1e9);
            printf("%-24s %-18s %10.3f %10.1f %10s\n", rows[r].name, shape, seconds * 1e3,
                   c.bytes / seconds / 1e9, flops);
            fflush(stdout);
        }
    }
out:
    return st;
}

static dt_status bench_size(const model_size *size, dt_dtype act, const char *device, int threads,
                            const char *only, dt_error *err)
{
    dt_status st = DT_OK;
    subject s = {.size = size, .act = act};
    dt_device_arena arena = {0};

    DT_TRY(dt_device_open(&s.device, device, threads, false, &s.err));
    DT_TRY(dt_device_arena_open(&arena, &s.device, size->capacity, &s.err));
    DT_TRY(subject_fill(&s, &arena));
    DT_TRY(bench(&s, only));
out:
    *err = s.err;
    dt_device_arena_close(&arena);
    dt_device_close(&s.device);
    return st;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        dt_dtype type;
    } types[] = {{"fp32", DT_F32}, {"bf16", DT_BF16}, {"fp16", DT_F16}};
    bool card = argc > 1 && strncmp(argv[1], "cuda:", 5) == 0;
    const char *device = card ? argv[1] : "cpu";
    int threads = argc > 1 && !card ? (int)strtol(argv[1], NULL, 10) : 0;
    const char *type = argc > 2 ? argv[2] : "all", *only = argc > 3 ? argv[3] : "";
    bool quick = argc > 4 && strcmp(argv[4], "quick") == 0;

    for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            dt_error err = DT_ERROR_INIT;

            if (sizes[z].card != card || sizes[z].quick != quick ||
                (strcmp(type, "all") != 0 && strcmp(type, types[t].name) != 0))
                continue;
            if (bench_size(&sizes[z], types[t].type, device, threads, only, &err) != DT_OK) {
                fprintf(stderr, "bench_ops: %s\n", err.message);
                return 1;
            }
        }
    }
    return 0;
}
