#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

static void embedding(bench *b, const int64_t *dim, double scale, bool learned_places)
{
    int64_t batch = dim[0], t = dim[1], c = dim[2], vocab = dim[3], n = batch * t;
    dt_tensor tokens = bench_tokens(b, 0, vocab, batch, t), none = {0}, frozen;
    operand wte = bench_random(b, b->act, 1.0, vocab, c, 0);
    operand wpe = bench_random(b, b->act, 1.0, t + 1, c, 0);
    operand dout = bench_random(b, b->act, 1.0, batch, t, c);
    operand dwte = bench_random(b, DT_F32, 1.0, vocab, c, 0);
    operand dwpe = bench_random(b, DT_F32, 1.0, t + 1, c, 0);
    dt_tensor out = bench_output(b, b->act, batch, t, c);
    double *want = bench_doubles(b, n * c);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->embedding_forward(&b->device, &out, &tokens, &wte.tensor, &wpe.tensor,
                                              scale, NULL, &err),
             &err);
    ref_embedding_forward(want, tokens.data, wte.value, wpe.value, scale, n, t, c);
    bench_check(b, "out", &out, want);

    bench_ok(b->device.ops->embedding_backward(&b->device, &dwte.tensor,
                                               learned_places ? &dwpe.tensor : &none, &dout.tensor,
                                               &tokens, scale, NULL, &err),
             &err);
    ref_embedding_backward(dwte.value, learned_places ? dwpe.value : NULL, dout.value, tokens.data,
                           scale, n, t, c);
    bench_check(b, "dwte", &dwte.tensor, dwte.value);
    bench_check(b, "dwpe", &dwpe.tensor, dwpe.value);

    /* words that are not trained */
    frozen = dwte.tensor;
    frozen.data = NULL;
    bench_ok(b->device.ops->embedding_backward(&b->device, &frozen, &dwpe.tensor, &dout.tensor,
                                               &tokens, scale, NULL, &err),
             &err);
    ref_embedding_backward(dwte.value, dwpe.value, dout.value, tokens.data, scale, n, t, c);
    bench_check(b, "dwpe alone", &dwpe.tensor, dwpe.value);
}

/* B T C Vp; the position table is one row longer than T */
void case_embedding(bench *b, const int64_t *dim)
{
    embedding(b, dim, 1.0, true);
}

/* the same, scaled by the root of C, and without a gradient for the positions */
void case_embedding_fixed_places(bench *b, const int64_t *dim)
{
    embedding(b, dim, sqrt((double)dim[2]), false);
}

/* the same without positions */
void case_embedding_no_places(bench *b, const int64_t *dim)
{
    int64_t batch = dim[0], t = dim[1], c = dim[2], vocab = dim[3], n = batch * t;
    dt_tensor tokens = bench_tokens(b, 0, vocab, batch, t), none = {0};
    operand wte = bench_random(b, b->act, 1.0, vocab, c, 0);
    dt_tensor out = bench_output(b, b->act, batch, t, c);
    double *want = bench_doubles(b, n * c), *nowhere = bench_doubles(b, t * c);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->embedding_forward(&b->device, &out, &tokens, &wte.tensor, &none, 1.0,
                                              NULL, &err),
             &err);
    ref_embedding_forward(want, tokens.data, wte.value, nowhere, 1.0, n, t, c);
    bench_check(b, "out", &out, want);
}

/* B T; about half of the ids are padding, and all of the first row */
void case_row_lengths(bench *b, const int64_t *dim)
{
    int64_t rows = dim[0], columns = dim[1];
    dt_tensor tokens = bench_tokens(b, 0, 2, rows, columns);
    dt_tensor lengths = bench_tokens(b, 7, 8, rows, 1);
    dt_error err = DT_ERROR_INIT;
    int32_t *token = tokens.data;

    memset(token, 0, (size_t)columns * sizeof *token);
    bench_ok(b->device.ops->row_lengths(&b->device, &lengths, &tokens, 0, &err), &err);
    bench_ok(b->device.synchronize(&b->device, &err), &err);
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = columns;

        while (length > 1 && token[i * columns + length - 1] == 0)
            length--;
        assert_int_equal(((const int32_t *)lengths.data)[i], length);
    }
}

/* The gradient of a bias that is summed on the way, if the backend has it. */
static void layernorm_bias(bench *b, const operand *dy, const operand *x, const operand *w,
                           const dt_tensor *mean, const dt_tensor *rstd, int64_t n, int64_t c,
                           double eps)
{
    operand dx = bench_random(b, b->act, 1.0, n, c, 0), dw = bench_random(b, DT_F32, 1.0, c, 0, 0);
    operand db = bench_random(b, DT_F32, 1.0, c, 0, 0), sum = bench_random(b, DT_F32, 1.0, c, 0, 0);
    dt_error err = DT_ERROR_INIT;

    if (b->device.ops->layernorm_backward_bias == NULL)
        return;
    bench_ok(b->device.ops->layernorm_backward_bias(&b->device, &dx.tensor, &dw.tensor, &db.tensor,
                                                    &sum.tensor, &dy->tensor, &x->tensor, mean,
                                                    rstd, &w->tensor, &err),
             &err);
    for (int64_t i = 0; i < n * c; i++)
        sum.value[i % c] += dx.value[i];
    ref_layernorm_backward(dx.value, dw.value, db.value, dy->value, x->value, w->value, n, c, eps);
    bench_check(b, "dx with a bias", &dx.tensor, dx.value);
    bench_check(b, "dw with a bias", &dw.tensor, dw.value);
    bench_check(b, "db with a bias", &db.tensor, db.value);
    bench_check(b, "dbias", &sum.tensor, sum.value);
}

/* dim: N, C */
void case_layernorm(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], c = dim[1];
    const double eps = 1e-5;
    operand x = bench_random(b, b->act, 2.0, n, c, 0), dy = bench_random(b, b->act, 1.0, n, c, 0);
    operand w = bench_random(b, b->act, 1.0, c, 0, 0), bias = bench_random(b, b->act, 1.0, c, 0, 0);
    operand dx = bench_random(b, b->act, 1.0, n, c, 0);
    operand dw = bench_random(b, DT_F32, 1.0, c, 0, 0), db = bench_random(b, DT_F32, 1.0, c, 0, 0);
    dt_tensor y = bench_output(b, b->act, n, c, 0);
    dt_tensor mean = bench_output(b, DT_F32, n, 0, 0), rstd = bench_output(b, DT_F32, n, 0, 0);
    double *want = bench_doubles(b, n * c), *want_mean = bench_doubles(b, n);
    double *want_rstd = bench_doubles(b, n);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->layernorm_forward(&b->device, &y, &mean, &rstd, &x.tensor, &w.tensor,
                                              &bias.tensor, eps, &err),
             &err);
    ref_layernorm_forward(want, want_mean, want_rstd, x.value, w.value, bias.value, n, c, eps);
    bench_check(b, "y", &y, want);
    bench_check(b, "mean", &mean, want_mean);
    bench_check(b, "rstd", &rstd, want_rstd);

    bench_ok(b->device.ops->layernorm_backward(&b->device, &dx.tensor, &dw.tensor, &db.tensor,
                                               &dy.tensor, &x.tensor, &mean, &rstd, &w.tensor,
                                               &err),
             &err);
    ref_layernorm_backward(dx.value, dw.value, db.value, dy.value, x.value, w.value, n, c, eps);
    bench_check(b, "dx", &dx.tensor, dx.value);
    bench_check(b, "dw", &dw.tensor, dw.value);
    bench_check(b, "db", &db.tensor, db.value);

    layernorm_bias(b, &dy, &x, &w, &mean, &rstd, n, c, eps);
    for (int left_out = 1; left_out <= 3; left_out++) { /* dw, db, both: not trained */
        operand dx2 = bench_random(b, b->act, 1.0, n, c, 0);
        operand dw2 = bench_random(b, DT_F32, 1.0, c, 0, 0);
        operand db2 = bench_random(b, DT_F32, 1.0, c, 0, 0);
        dt_tensor none = {0}, *dw_out = (left_out & 1) != 0 ? &none : &dw2.tensor,
                  *db_out = (left_out & 2) != 0 ? &none : &db2.tensor;

        bench_ok(b->device.ops->layernorm_backward(&b->device, &dx2.tensor, dw_out, db_out,
                                                   &dy.tensor, &x.tensor, &mean, &rstd, &w.tensor,
                                                   &err),
                 &err);
        ref_layernorm_backward(dx2.value, dw2.value, db2.value, dy.value, x.value, w.value, n, c,
                               eps);
        bench_check(b, "dx", &dx2.tensor, dx2.value);
        if (dw_out != &none)
            bench_check(b, "dw without db", &dw2.tensor, dw2.value);
        if (db_out != &none)
            bench_check(b, "db without dw", &db2.tensor, db2.value);
    }
}

/* elements; the last value of x is far out on either side */
static void activation(bench *b, const int64_t *dim, dt_activation_kind kind,
                       double (*value)(double), double (*slope)(double))
{
    int64_t n = dim[0];
    operand x = bench_random(b, b->act, n % 2 == 0 ? 4.0 : 12.0, n, 0, 0);
    operand dy = bench_random(b, b->act, 1.0, n, 0, 0);
    dt_tensor y = bench_output(b, b->act, n, 0, 0), dx = bench_output(b, b->act, n, 0, 0);
    double *want = bench_doubles(b, n);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->activation_forward(&b->device, &y, &x.tensor, kind, &err), &err);
    for (int64_t i = 0; i < n; i++)
        want[i] = value(x.value[i]);
    bench_check(b, "y", &y, want);

    bench_ok(b->device.ops->activation_backward(&b->device, &dx, &dy.tensor, &x.tensor, kind, &err),
             &err);
    for (int64_t i = 0; i < n; i++)
        want[i] = dy.value[i] * slope(x.value[i]);
    bench_check(b, "dx", &dx, want);
    bench_ok(b->device.ops->activation_backward(&b->device, &dy.tensor, &dy.tensor, &x.tensor, kind,
                                                &err),
             &err);
    bench_check(b, "dx in place of dy", &dy.tensor, want);
}

void case_gelu(bench *b, const int64_t *dim)
{
    activation(b, dim, DT_ACTIVATION_GELU, ref_gelu, ref_gelu_slope);
}

void case_gelu_tanh(bench *b, const int64_t *dim)
{
    activation(b, dim, DT_ACTIVATION_GELU_TANH, ref_gelu_tanh, ref_gelu_tanh_slope);
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double relu_slope(double x)
{
    return x > 0 ? 1 : 0;
}

void case_relu(bench *b, const int64_t *dim)
{
    activation(b, dim, DT_ACTIVATION_RELU, relu, relu_slope);
}

static double tanh_slope(double x)
{
    return 1 / (cosh(x) * cosh(x));
}

void case_tanh(bench *b, const int64_t *dim)
{
    activation(b, dim, DT_ACTIVATION_TANH, tanh, tanh_slope);
}

/* N O; the target of every fifth number does not count */
void case_squared_error(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], width = dim[1];
    operand y = bench_random(b, b->act, 1.0, n, width, 0);
    operand targets = bench_random(b, DT_F32, 1.0, n, width, 0);
    dt_tensor losses = bench_output(b, DT_F32, n, 0, 0);
    double *want = bench_doubles(b, n), *gradient = bench_doubles(b, n * width), scale = 0.25;
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n * width; i++) {
        double off = y.value[i] - targets.value[i];

        if (i % 5 == 3) {
            bench_put(&targets.tensor, i, NAN);
            off = 0;
        }
        want[i / width] += off * off;
        gradient[i] = 2 * off * scale;
    }
    bench_ok(
        b->device.ops->squared_error_forward(&b->device, &losses, &y.tensor, &targets.tensor, &err),
        &err);
    bench_check(b, "losses", &losses, want);
    bench_ok(b->device.ops->squared_error_backward(&b->device, &losses, &y.tensor, &targets.tensor,
                                                   bench_bytes(b, &scale, sizeof(scale)), &err),
             &err);
    bench_check(b, "losses of backward", &losses, want);
    bench_check(b, "dy", &y.tensor, gradient);
}

/* elements, percent dropped; a clock gives the time, whatever the key says */
void case_dropout(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], kept = 0;
    double p = (double)dim[1] / 100.0, expected = (double)n * (1.0 - p);
    const dt_philox_key key = {
        .seed = 7, .step = 3, .micro_step = 1, .layer = 2, .op = DT_PHILOX_DROPOUT_MLP};
    const dt_philox_clock clock = {.step = 3, .micro_step = 1};
    dt_philox_key later = {.seed = 7, .step = 9, .layer = 2, .op = DT_PHILOX_DROPOUT_MLP};
    operand x = bench_random(b, b->act, 1.0, n, 0, 0);
    dt_tensor y = bench_output(b, b->act, n, 0, 0), dx = bench_output(b, b->act, n, 0, 0);
    double *want = bench_doubles(b, n);
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        dt_philox_block block = dt_philox_draw(&key, (uint64_t)i / 4);
        bool keep = dt_philox_uniform(block.word[i % 4]) >= (float)p;

        want[i] = keep ? x.value[i] / (1.0 - p) : 0.0;
        kept += keep;
    }
    assert_true(fabs((double)kept - expected) <= 5.0 * sqrt(expected * p) + 1.0);
    bench_ok(b->device.ops->dropout_forward(&b->device, &y, &x.tensor, p, &key, &err), &err);
    bench_check(b, "y", &y, want);
    later.clock = bench_bytes(b, &clock, sizeof clock);
    bench_ok(b->device.ops->dropout_backward(&b->device, &dx, &x.tensor, p, &later, &err), &err);
    bench_check(b, "dx", &dx, want);
    bench_ok(b->device.ops->dropout_forward(&b->device, &x.tensor, &x.tensor, p, &key, &err), &err);
    bench_check(b, "y in place of x", &x.tensor, want);
}

/* elements */
void case_residual(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand left = bench_random(b, b->act, 1.0, n, 0, 0);
    operand right = bench_random(b, b->act, 1.0, n, 0, 0);
    dt_tensor y = bench_output(b, b->act, n, 0, 0);
    double *want = bench_doubles(b, n);
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++)
        want[i] = left.value[i] + right.value[i];
    bench_ok(b->device.ops->residual_forward(&b->device, &y, &left.tensor, &right.tensor, &err),
             &err);
    bench_check(b, "y", &y, want);
    bench_ok(b->device.ops->residual_forward(&b->device, &right.tensor, &left.tensor, &right.tensor,
                                             &err),
             &err);
    bench_check(b, "y in place of b", &right.tensor, want);
}

/* elements: to fp32, which is exact, and from there to each type, and between those of 16 bits */
void case_cast(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand x = bench_random(b, b->act, 1e3, n, 0, 0);
    dt_tensor wide = bench_output(b, DT_F32, n, 0, 0), bf16 = bench_output(b, DT_BF16, n, 0, 0);
    dt_tensor f16 = bench_output(b, DT_F16, n, 0, 0), direct = bench_output(b, DT_F16, n, 0, 0);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->cast(&b->device, &wide, &x.tensor, &err), &err);
    bench_check(b, "fp32", &wide, x.value);
    for (int64_t i = 0; i < n; i++)
        assert_true(bench_element(&wide, i) == x.value[i]);
    bench_ok(b->device.ops->cast(&b->device, &bf16, &wide, &err), &err);
    bench_check(b, "bf16", &bf16, x.value);
    bench_ok(b->device.ops->cast(&b->device, &f16, &wide, &err), &err);
    bench_check(b, "fp16", &f16, x.value);
    bench_ok(b->device.ops->cast(&b->device, &direct, &x.tensor, &err), &err);
    bench_ok(b->device.synchronize(&b->device, &err), &err);
    assert_memory_equal(direct.data, f16.data, dt_tensor_bytes(&f16));
}
