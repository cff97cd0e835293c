#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

/* dim: N, I, O */
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
    dt_tensor dx = bench_output(b, b->act, n, i, 0), none = {0};
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

    /* a bias whose weight is not trained */
    bench_ok(
        ops->matmul_backward_weight(&b->device, &none, &dbias.tensor, &dy.tensor, &x.tensor, &err),
        &err);
    ref_matmul_backward(want_dx, dw.value, dbias.value, dy.value, x.value, w.value, n, i, o);
    bench_check(b, "dbias alone", &dbias.tensor, dbias.value);

    if (ops->matmul_first_weight == NULL)
        return;
    for (int with_bias = 0; with_bias < 2; with_bias++) { /* over memory that is not numbers */
        dt_tensor first = bench_output(b, DT_F32, o, i, 0);
        double *want_dw = bench_doubles(b, o * i);

        bench_ok(ops->matmul_first_weight(&b->device, &first, with_bias ? &dbias.tensor : &none,
                                          &dy.tensor, &x.tensor, &err),
                 &err);
        ref_matmul_backward(want_dx, want_dw, with_bias ? dbias.value : bench_doubles(b, o),
                            dy.value, x.value, w.value, n, i, o);
        bench_check(b, "first dw", &first, want_dw);
        bench_check(b, "dbias with the first dw", &dbias.tensor, dbias.value);
    }
}

/* N I O, if the backend has it: pre = x w^T + bias, y = gelu(pre); dpre = (dy v) gelu'(pre), v
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

/* N I O, if the backend has it: y = a + x w^T + bias, and without the bias */
void case_matmul_residual(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], i = dim[1], o = dim[2];
    const dt_ops *ops = b->device.ops;
    operand x = bench_random(b, b->act, 1.0, n, i, 0), w = bench_random(b, b->act, 1.0, o, i, 0);
    operand bias = bench_random(b, b->act, 1.0, o, 0, 0);
    operand a = bench_random(b, b->act, 2.0, n, o, 0);
    const operand *biases[] = {&bias, NULL};
    dt_error err = DT_ERROR_INIT;

    for (int k = 0; k < 2 && ops->matmul_residual_forward != NULL; k++) {
        const operand *added = biases[k];
        dt_tensor y = bench_output(b, b->act, n, o, 0);
        double *want = bench_doubles(b, n * o);

        bench_ok(ops->matmul_residual_forward(&b->device, &y, &a.tensor, &x.tensor, &w.tensor,
                                              added != NULL ? &added->tensor : NULL, &err),
                 &err);
        ref_matmul_forward(want, x.value, w.value, added != NULL ? added->value : NULL, n, i, o);
        for (int64_t at = 0; at < n * o; at++)
            want[at] += a.value[at];
        bench_check(b, added != NULL ? "y" : "y without bias", &y, want);
    }
}

/* Multiplies the rows of the reference's results (n) and (n,width) by their weights. */
static void weigh(double *losses, double *gradient, const operand *weights, int64_t n,
                  int64_t width)
{
    for (int64_t i = 0; i < n; i++) {
        losses[i] *= weights->value[i];
        for (int64_t j = 0; j < width; j++)
            gradient[i * width + j] *= weights->value[i];
    }
}

/* N Vp V; about one target in four is not counted, and padded logits would be the maximum if they
 * counted */
static void cross_entropy(bench *b, const int64_t *dim, double smoothing, bool weighted)
{
    int64_t n = dim[0], padded = dim[1], vocab = dim[2];
    const double scale = 1.0 / (double)(2 * n + 1);
    operand logits = bench_random(b, b->act, 8.0, n, padded, 0);
    operand weights = bench_random(b, DT_F32, 1.0, n, 0, 0);
    const dt_tensor *each = weighted ? &weights.tensor : NULL;
    dt_tensor targets = bench_tokens(b, 0, vocab, n, 1), losses = bench_output(b, DT_F32, n, 0, 0);
    double *want = bench_doubles(b, n), *want_d = bench_doubles(b, n * padded);
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        if (bench_uniform(b) < 0.25)
            ((int32_t *)targets.data)[i] = i % 2 == 0 ? -1 : -100;
        for (int64_t j = vocab; j < padded; j++)
            bench_put(&logits.tensor, i * padded + j, 1e4);
    }
    ref_cross_entropy(want, want_d, logits.value, targets.data, n, padded, vocab, scale, 0);
    if (weighted)
        weigh(want, want_d, &weights, n, padded);
    bench_ok(b->device.ops->cross_entropy_forward(&b->device, &losses, &logits.tensor, &targets,
                                                  each, vocab, &err),
             &err);
    bench_check(b, "losses", &losses, want);
    ref_cross_entropy(want, want_d, logits.value, targets.data, n, padded, vocab, scale, smoothing);
    if (weighted)
        weigh(want, want_d, &weights, n, padded);
    memset(losses.data, 0xff, dt_tensor_bytes(&losses));
    bench_ok(b->device.ops->cross_entropy_backward(
                 &b->device, &losses, &logits.tensor, &targets, each, vocab,
                 bench_bytes(b, &scale, sizeof(scale)), smoothing, &err),
             &err);
    bench_check(b, "losses of backward", &losses, want);
    bench_check(b, "dlogits", &logits.tensor, want_d);
}

/* with and without label smoothing, which only the backward pass has */
void case_cross_entropy(bench *b, const int64_t *dim)
{
    cross_entropy(b, dim, 0, false);
    cross_entropy(b, dim, 0.1, false);
}

void case_cross_entropy_weighted(bench *b, const int64_t *dim)
{
    cross_entropy(b, dim, 0, true);
    cross_entropy(b, dim, 0.1, true);
}
