#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

#include "base/banned.h"

/* N I O */
void case_matmul(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], i = dim[1], o = dim[2];
    const dt_ops *ops = b->device.ops;
    operand x = bench_random(b, b->act, 1.0, n, i, 0), w = bench_random(b, b->act, 1.0, o, i, 0);
    operand bias = bench_random(b, b->act, 1.0, o, 0, 0);
    operand dy = bench_random(b, b->act, 1.0, n, o, 0);
    operand dw = bench_random(b, DT_F32, 1.0, o, i, 0),
            dbias = bench_random(b, DT_F32, 1.0, o, 0, 0);
    dt_tensor y = bench_output(b, b->act, n, o, 0), wide_y = bench_output(b, DT_F32, n, o, 0);
    dt_tensor dx = bench_output(b, b->act, n, i, 0);
    double *want = bench_doubles(b, n * o), *want_dx = bench_doubles(b, n * i);
    dt_error err = DT_ERROR_INIT;

    bench_ok(ops->matmul_forward(&b->device, &y, &x.tensor, &w.tensor, &bias.tensor, &err), &err);
    ref_matmul_forward(want, x.value, w.value, bias.value, n, i, o);
    bench_check(b, "y", &y, want);
    bench_ok(ops->matmul_forward(&b->device, &wide_y, &x.tensor, &w.tensor, NULL, &err), &err);
    ref_matmul_forward(want, x.value, w.value, NULL, n, i, o);
    bench_check(b, "y in fp32 without bias", &wide_y, want);

    ref_matmul_backward(want_dx, dw.value, dbias.value, dy.value, x.value, w.value, n, i, o);
    bench_ok(ops->matmul_backward_input(&b->device, &dx, &dy.tensor, &w.tensor, &err), &err);
    bench_check(b, "dx", &dx, want_dx);
    bench_ok(ops->matmul_backward_weight(&b->device, &dw.tensor, &dbias.tensor, &dy.tensor,
                                         &x.tensor, &err),
             &err);
    bench_check(b, "dw", &dw.tensor, dw.value);
    bench_check(b, "dbias", &dbias.tensor, dbias.value);
}

/* N I O, where the backend has it: pre = x w^T + bias, y = gelu(pre); dpre = (dy v) gelu'(pre), v
 * (I,O)
 */
void case_matmul_gelu(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], i = dim[1], o = dim[2];
    const dt_ops *ops = b->device.ops;
    operand x = bench_random(b, b->act, 1.0, n, i, 0), w = bench_random(b, b->act, 1.0, o, i, 0);
    operand bias = bench_random(b, b->act, 1.0, o, 0, 0);
    operand dy = bench_random(b, b->act, 1.0, n, i, 0), v = bench_random(b, b->act, 1.0, i, o, 0);
    operand at = bench_random(b, b->act, 2.0, n, o, 0);
    dt_tensor y = bench_output(b, b->act, n, o, 0), pre = bench_output(b, b->act, n, o, 0);
    dt_tensor dpre = bench_output(b, b->act, n, o, 0);
    double *want = bench_doubles(b, n * o), *want_pre = bench_doubles(b, n * o);
    double *unused = bench_doubles(b, i * o);
    dt_error err = DT_ERROR_INIT;

    if (ops->matmul_gelu_forward == NULL || ops->matmul_gelu_backward == NULL)
        return;
    bench_ok(
        ops->matmul_gelu_forward(&b->device, &y, &pre, &x.tensor, &w.tensor, &bias.tensor, &err),
        &err);
    ref_matmul_forward(want_pre, x.value, w.value, bias.value, n, i, o);
    bench_check(b, "pre", &pre, want_pre);
    for (int64_t k = 0; k < n * o; k++)
        want[k] = ref_gelu_tanh(want_pre[k]);
    bench_check(b, "y", &y, want);

    bench_ok(ops->matmul_gelu_backward(&b->device, &dpre, &dy.tensor, &v.tensor, &at.tensor, &err),
             &err);
    ref_matmul_backward(want, unused, unused, dy.value, at.value, v.value, n, o, i);
    for (int64_t k = 0; k < n * o; k++)
        want[k] *= ref_gelu_tanh_slope(at.value[k]);
    bench_check(b, "dpre", &dpre, want);
}

/* The last queries alone: the last rows of what all of them make, or a backend that says so. */
static void attention_of_last(bench *b, const dt_tensor *qkv, const dt_attention_args *args,
                              int64_t queries, const double *want, const double *want_lse)
{
    int64_t batch = qkv->dim[0], t = qkv->dim[1], c = qkv->dim[2] / 3, first = t - queries;
    dt_tensor out = bench_output(b, b->act, batch, queries, c);
    dt_tensor lse = bench_output(b, DT_F32, batch, args->heads, queries);
    double *rows = bench_doubles(b, batch * queries * c);
    double *sums = bench_doubles(b, batch * args->heads * queries);
    dt_error err = DT_ERROR_INIT;
    dt_status st = b->device.ops->attention_forward(&b->device, &out, &lse, qkv, args, &err);

    if (st == DT_ERR_UNSUPPORTED)
        return;
    bench_ok(st, &err);
    for (int64_t i = 0; i < batch; i++)
        memcpy(rows + i * queries * c, want + (i * t + first) * c,
               (size_t)(queries * c) * sizeof(double));
    for (int64_t i = 0; i < batch * args->heads; i++)
        memcpy(sums + i * queries, want_lse + i * t + first, (size_t)queries * sizeof(double));
    bench_check(b, args->causal ? "out of the last queries" : "full out of the last queries", &out,
                rows);
    bench_check(b, args->causal ? "lse of the last queries" : "full lse of the last queries", &lse,
                sums);
}

static void attention(bench *b, const int64_t *dim, const dt_attention_args *args,
                      const double *mask)
{
    int64_t batch = dim[0], t = dim[1], heads = dim[2], d = dim[3], c = heads * d;
    const ref_attention shape = {batch, t, heads, d, args->causal, mask};
    operand qkv = bench_random(b, b->act, 1.5, batch, t, 3 * c);
    operand dout = bench_random(b, b->act, 1.0, batch, t, c);
    dt_tensor out = bench_output(b, b->act, batch, t, c);
    dt_tensor lse = bench_output(b, DT_F32, batch, heads, t);
    dt_tensor dqkv = bench_output(b, b->act, batch, t, 3 * c);
    double *want = bench_doubles(b, batch * t * 3 * c), *want_lse = bench_doubles(b, batch * c * t);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->attention_forward(&b->device, &out, &lse, &qkv.tensor, args, &err),
             &err);
    ref_attention_forward(want, want_lse, qkv.value, &shape);
    bench_check(b, args->causal ? "out" : "full out", &out, want);
    bench_check(b, args->causal ? "lse" : "full lse", &lse, want_lse);
    attention_of_last(b, &qkv.tensor, args, 1, want, want_lse);
    attention_of_last(b, &qkv.tensor, args, (t + 1) / 2, want, want_lse);

    bench_ok(b->device.ops->attention_backward(&b->device, &dqkv, &dout.tensor, &qkv.tensor, &out,
                                               &lse, args, &err),
             &err);
    ref_attention_backward(want, dout.value, qkv.value, &shape);
    bench_check(b, args->causal ? "dqkv" : "full dqkv", &dqkv, want);
}

/* B T heads D; causal and full */
void case_attention(bench *b, const int64_t *dim)
{
    attention(b, dim, &(dt_attention_args){.heads = dim[2], .causal = true}, NULL);
    attention(b, dim, &(dt_attention_args){.heads = dim[2]}, NULL);
}

/* the same, three in ten dropped; as many as that, and as ops.h numbers them */
void case_attention_dropout(bench *b, const int64_t *dim)
{
    const double p = 0.3;
    const dt_philox_key key = {.seed = 5, .step = 2, .layer = 3, .op = DT_PHILOX_DROPOUT_ATTENTION};
    const dt_philox_clock clock = {.step = 2};
    dt_philox_key by_clock = {.seed = 5, .step = 9, .layer = 3, .op = DT_PHILOX_DROPOUT_ATTENTION};
    dt_attention_args args = {.heads = dim[2], .causal = true, .p = p, .key = &by_clock};
    int64_t n = dim[0] * dim[2] * dim[1] * dim[1], kept = 0;
    double *mask = bench_doubles(b, n), expected = (double)n * (1.0 - p);

    for (int64_t i = 0; i < n; i++) {
        dt_philox_block block = dt_philox_draw(&key, (uint64_t)i / 4);
        bool keep = dt_philox_uniform(block.word[i % 4]) >= (float)p;

        mask[i] = keep ? 1.0 / (1.0 - p) : 0.0;
        kept += keep;
    }
    assert_true(fabs((double)kept - expected) <= 5.0 * sqrt(expected * p) + 1.0);
    by_clock.clock = bench_bytes(b, &clock, sizeof clock);
    attention(b, dim, &args, mask);
    args.causal = false;
    attention(b, dim, &args, mask);
}

/* N Vp V; about one target in four is not counted, and padded logits would win if they were */
void case_cross_entropy(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], padded = dim[1], vocab = dim[2];
    const double scale = 1.0 / (double)(2 * n + 1);
    operand logits = bench_random(b, b->act, 8.0, n, padded, 0);
    dt_tensor targets = bench_tokens(b, 0, vocab, n, 1), losses = bench_output(b, DT_F32, n, 0, 0);
    double *want = bench_doubles(b, n), *want_d = bench_doubles(b, n * padded);
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        if (bench_uniform(b) < 0.25)
            ((int32_t *)targets.data)[i] = i % 2 == 0 ? -1 : -100;
        for (int64_t j = vocab; j < padded; j++)
            bench_put(&logits.tensor, i * padded + j, 1e4);
    }
    ref_cross_entropy(want, want_d, logits.value, targets.data, n, padded, vocab, scale);
    bench_ok(b->device.ops->cross_entropy_forward(&b->device, &losses, &logits.tensor, &targets,
                                                  vocab, &err),
             &err);
    bench_check(b, "losses", &losses, want);
    memset(losses.data, 0xff, dt_tensor_bytes(&losses));
    bench_ok(b->device.ops->cross_entropy_backward(&b->device, &losses, &logits.tensor, &targets,
                                                   vocab, scale, &err),
             &err);
    bench_check(b, "losses of backward", &losses, want);
    bench_check(b, "dlogits", &logits.tensor, want_d);
}
