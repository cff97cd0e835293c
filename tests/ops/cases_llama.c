/* The ops of a Llama block that no other kind has, with their formulas in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

#define EPS 1e-5

/* w plus the shift. */
static const double *shifted(bench *b, const operand *w, double shift)
{
    int64_t n = dt_tensor_elems(&w->tensor);
    double *out = bench_doubles(b, n);

    for (int64_t i = 0; i < n; i++)
        out[i] = w->value[i] + shift;
    return out;
}

/* Computes y = x rstd w over c; returns rstd. */
static double norm(double *y, const double *x, const double *w, int64_t c)
{
    double squares = 0, rstd;

    for (int64_t j = 0; j < c; j++)
        squares += x[j] * x[j];
    rstd = 1 / sqrt(squares / (double)c + EPS);
    for (int64_t j = 0; j < c; j++)
        y[j] = x[j] * rstd * w[j];
    return rstd;
}

/* Adds the gradients: dx += ..., dw += ... */
static void norm_backward(double *dx, double *dw, const double *dy, const double *x,
                          const double *w, double rstd, int64_t c)
{
    double mean = 0;

    for (int64_t j = 0; j < c; j++)
        mean += dy[j] * w[j] * x[j] * rstd / (double)c;
    for (int64_t j = 0; j < c; j++) {
        dx[j] += rstd * (dy[j] * w[j] - x[j] * rstd * mean);
        dw[j] += dy[j] * x[j] * rstd;
    }
}

/* dim: N, C; if N is odd, one is added to the weights */
void case_rmsnorm(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], c = dim[1];
    double shift = (double)(n % 2);
    operand x = bench_random(b, b->act, 2.0, n, c, 0), dy = bench_random(b, b->act, 1.0, n, c, 0);
    operand w = bench_random(b, b->act, 1.0, c, 0, 0), dx = bench_random(b, b->act, 1.0, n, c, 0);
    operand dw = bench_random(b, DT_F32, 1.0, c, 0, 0),
            more = bench_random(b, b->act, 1.0, n, c, 0);
    dt_tensor y = bench_output(b, b->act, n, c, 0), rstd = bench_output(b, DT_F32, n, 0, 0);
    dt_tensor none = {0};
    double *want = bench_doubles(b, n * c), *want_rstd = bench_doubles(b, n);
    const double *scale = shifted(b, &w, shift);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->rmsnorm_forward(&b->device, &y, &rstd, &x.tensor, &w.tensor, shift, EPS,
                                            &err),
             &err);
    for (int64_t i = 0; i < n; i++)
        want_rstd[i] = norm(want + i * c, x.value + i * c, scale, c);
    bench_check(b, "y", &y, want);
    bench_check(b, "rstd", &rstd, want_rstd);

    bench_ok(b->device.ops->rmsnorm_backward(&b->device, &dx.tensor, &dw.tensor, &dy.tensor,
                                             &x.tensor, &rstd, &w.tensor, shift, &err),
             &err);
    for (int64_t i = 0; i < n; i++)
        norm_backward(dx.value + i * c, dw.value, dy.value + i * c, x.value + i * c, scale,
                      want_rstd[i], c);
    bench_check(b, "dx", &dx.tensor, dx.value);
    bench_check(b, "dw", &dw.tensor, dw.value);

    /* without dw, which is not trained */
    bench_ok(b->device.ops->rmsnorm_backward(&b->device, &more.tensor, &none, &dy.tensor, &x.tensor,
                                             &rstd, &w.tensor, shift, &err),
             &err);
    for (int64_t i = 0; i < n; i++)
        norm_backward(more.value + i * c, dw.value, dy.value + i * c, x.value + i * c, scale,
                      want_rstd[i], c);
    bench_check(b, "dx alone", &more.tensor, more.value);
}

/* Rotates the first r of d elements of a head by row t's angles; sign -1: back. y may be z. */
static void turn(double *y, const double *z, const double *angles, double sign, int64_t r,
                 int64_t d)
{
    for (int64_t i = 0; i < r / 2; i++) {
        double first = z[i], second = z[r / 2 + i], s = sign * angles[r / 2 + i];

        y[i] = first * angles[i] - second * s;
        y[r / 2 + i] = second * angles[i] + first * s;
    }
    for (int64_t i = r; i < d; i++)
        y[i] = z[i];
}

/* B T H D: from the last heads of rows of (H+1) D + 3 columns, into the first heads of others. With two heads only
 * half of each is rotated, and one is added to the weights. */
static void rotary(bench *b, const int64_t *dim, bool normed)
{
    int64_t batch = dim[0], t = dim[1], heads = dim[2], d = dim[3], n = batch * t;
    int64_t r = heads == 2 ? (d + 3) / 4 * 2 : d;
    double shift = heads == 2 ? 1 : 0;
    int64_t wide = (heads + 1) * d + 3, first = d + 3, count = normed ? n * heads : 0;
    operand x = bench_random(b, b->act, 2.0, batch, t, wide);
    operand dy = bench_random(b, b->act, 1.0, batch, t, heads * d);
    operand angles = bench_random(b, DT_F32, 1.0, t + 2, r, 0);
    operand w = bench_random(b, b->act, 1.0, d, 0, 0), dw = bench_random(b, DT_F32, 1.0, d, 0, 0);
    dt_tensor y = bench_output(b, b->act, batch, t, heads * d), none = {0};
    dt_tensor rstd = bench_output(b, DT_F32, count > 0 ? count : 1, 0, 0);
    dt_tensor alone = bench_output(b, b->act, batch, t, heads * d);
    dt_heads from = dt_heads_of(&x.tensor, first, heads, d), to = dt_heads_of(&y, 0, heads, d);
    dt_heads gradient = dt_heads_of(&dy.tensor, 0, heads, d),
             other = dt_heads_of(&alone, 0, heads, d);
    double *want = bench_doubles(b, n * heads * d), *dwant = bench_doubles(b, n * heads * d);
    const double *scale = shifted(b, &w, shift);
    double *want_rstd = bench_doubles(b, count), *in_place = bench_doubles(b, n * wide);
    const dt_ops *ops = b->device.ops;
    dt_error err = DT_ERROR_INIT;

    memcpy(in_place, x.value, (size_t)(n * wide) * sizeof *in_place);
    for (int64_t i = 0; i < n * heads; i++) {
        const double *row = x.value + i / heads * wide + first + i % heads * d;
        const double *angle = angles.value + i / heads % t * r;
        double *out = want + i * d, *back = bench_doubles(b, d);

        turn(back, dy.value + i * d, angle, -1, r, d);
        if (normed) {
            want_rstd[i] = norm(out, row, scale, d);
            norm_backward(dwant + i * d, dw.value, back, row, scale, want_rstd[i], d);
        } else {
            memcpy(out, row, (size_t)d * sizeof *out);
            memcpy(dwant + i * d, back, (size_t)d * sizeof *back);
        }
        turn(out, out, angle, 1, r, d);
        memcpy(in_place + i / heads * wide + first + i % heads * d, out, (size_t)d * sizeof *out);
    }
    bench_ok(ops->rotary_forward(&b->device, &to, normed ? &rstd : &none, &from,
                                 normed ? &w.tensor : &none, shift, &angles.tensor, EPS, &err),
             &err);
    bench_check(b, "y", &y, want);
    if (normed) {
        bench_check(b, "rstd", &rstd, want_rstd);
        /* without dw, which is not trained */
        bench_ok(ops->rotary_backward(&b->device, &other, &none, &gradient, &from, &rstd, &w.tensor,
                                      shift, &angles.tensor, &err),
                 &err);
        bench_check(b, "dx alone", &alone, dwant);
    }
    bench_ok(ops->rotary_backward(&b->device, &gradient, normed ? &dw.tensor : &none, &gradient,
                                  &from, normed ? &rstd : &none, normed ? &w.tensor : &none, shift,
                                  &angles.tensor, &err),
             &err);
    bench_check(b, "dx in place of dy", &dy.tensor, dwant);
    if (normed)
        bench_check(b, "dw", &dw.tensor, dw.value);
    bench_ok(ops->rotary_forward(&b->device, &from, normed ? &rstd : &none, &from,
                                 normed ? &w.tensor : &none, shift, &angles.tensor, EPS, &err),
             &err);
    bench_check(b, "y in place of x", &x.tensor, in_place);
}

void case_rotary(bench *b, const int64_t *dim)
{
    rotary(b, dim, false);
}

void case_rotary_normed(bench *b, const int64_t *dim)
{
    rotary(b, dim, true);
}

/* The function of a gate, and its slope. */
static double gate_value(dt_gate_kind kind, double x)
{
    return kind == DT_GATE_GELU        ? ref_gelu(x)
           : kind == DT_GATE_GELU_TANH ? ref_gelu_tanh(x)
                                       : x / (1 + exp(-x));
}

static double gate_slope(dt_gate_kind kind, double x)
{
    double s = 1 / (1 + exp(-x));

    return kind == DT_GATE_GELU        ? ref_gelu_slope(x)
           : kind == DT_GATE_GELU_TANH ? ref_gelu_tanh_slope(x)
                                       : s * (1 + x * (1 - s));
}

/* N F; if F is odd, every value of a is far out on either side */
static void gate(bench *b, const int64_t *dim, dt_gate_kind kind)
{
    int64_t n = dim[0], f = dim[1];
    operand x = bench_random(b, b->act, f % 2 == 0 ? 4.0 : 12.0, n, 2 * f, 0);
    operand dy = bench_random(b, b->act, 1.0, n, f, 0);
    dt_tensor y = bench_output(b, b->act, n, f, 0), dx = bench_output(b, b->act, n, 2 * f, 0);
    double *want = bench_doubles(b, n * f), *dwant = bench_doubles(b, n * 2 * f);
    const dt_ops *ops = b->device.ops;
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n * f; i++) {
        int64_t at = i + i / f * f;

        want[i] = gate_value(kind, x.value[at]) * x.value[at + f];
        dwant[at] = dy.value[i] * x.value[at + f] * gate_slope(kind, x.value[at]);
        dwant[at + f] = dy.value[i] * gate_value(kind, x.value[at]);
    }
    bench_ok(ops->gate_forward(&b->device, &y, &x.tensor, kind, &err), &err);
    bench_check(b, "y", &y, want);
    bench_ok(ops->gate_backward(&b->device, &dx, &dy.tensor, &x.tensor, kind, &err), &err);
    bench_check(b, "dx", &dx, dwant);
    bench_ok(ops->gate_backward(&b->device, &x.tensor, &dy.tensor, &x.tensor, kind, &err), &err);
    bench_check(b, "dx in place of x", &x.tensor, dwant);
}

void case_gate_silu(bench *b, const int64_t *dim)
{
    gate(b, dim, DT_GATE_SILU);
}

void case_gate_gelu_tanh(bench *b, const int64_t *dim)
{
    gate(b, dim, DT_GATE_GELU_TANH);
}

void case_gate_gelu(bench *b, const int64_t *dim)
{
    gate(b, dim, DT_GATE_GELU);
}

/* N F; a factor and a cap, a factor alone, and a cap that bends only the largest numbers */
void case_softcap(bench *b, const int64_t *dim)
{
    static const double factors[] = {0.7, 1.3, 1}, caps[] = {1.5, 0, 30};
    int64_t elems = dim[0] * dim[1];
    const dt_ops *ops = b->device.ops;
    dt_error err = DT_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        operand x = bench_random(b, b->act, 4.0, dim[0], dim[1], 0);
        operand dy = bench_random(b, b->act, 1.0, dim[0], dim[1], 0);
        operand seen = bench_random(b, b->act, i == 0 ? 1.4 : 4.0, dim[0], dim[1], 0);
        double *want = bench_doubles(b, elems), *dwant = bench_doubles(b, elems);

        for (int64_t j = 0; j < elems; j++) {
            double t = caps[i] > 0 ? seen.value[j] / caps[i] : 0, scaled = factors[i] * x.value[j];

            want[j] = caps[i] > 0 ? caps[i] * tanh(scaled / caps[i]) : scaled;
            dwant[j] = dy.value[j] * factors[i] * (1 - t * t);
        }
        bench_ok(ops->softcap_forward(&b->device, &x.tensor, &x.tensor, factors[i], caps[i], &err),
                 &err);
        bench_check(b, "y in place of x", &x.tensor, want);
        bench_ok(ops->softcap_backward(&b->device, &dy.tensor, &dy.tensor, &seen.tensor, factors[i],
                                       caps[i], &err),
                 &err);
        bench_check(b, "dx in place of dy", &dy.tensor, dwant);
    }
}

/* B T H D: heads as in rotary() */
void case_heads_norm(bench *b, const int64_t *dim)
{
    int64_t batch = dim[0], t = dim[1], heads = dim[2], d = dim[3], n = batch * t, own = heads * d;
    int64_t wide = own + d + 3, first = d + 3;
    double shift = heads == 2 ? 1 : 0;
    operand x = bench_random(b, b->act, 2.0, batch, t, wide);
    operand dy = bench_random(b, b->act, 1.0, batch, t, own);
    operand w = bench_random(b, b->act, 1.0, own, 0, 0),
            dw = bench_random(b, DT_F32, 1.0, own, 0, 0);
    dt_tensor y = bench_output(b, b->act, batch, t, own), none = {0};
    dt_tensor sums = bench_output(b, DT_F32, n, 0, 0), products = bench_output(b, DT_F32, n, 0, 0);
    dt_heads from = dt_heads_of(&x.tensor, first, heads, d), to = dt_heads_of(&y, 0, heads, d);
    dt_heads gradient = dt_heads_of(&dy.tensor, 0, heads, d);
    double *want = bench_doubles(b, n * own), *dwant = bench_doubles(b, n * own);
    double *squares = bench_doubles(b, n), *mixed = bench_doubles(b, n);
    const double *scale = shifted(b, &w, shift);
    const dt_ops *ops = b->device.ops;
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        const double *row = x.value + i * wide + first;
        double rstd;

        for (int64_t j = 0; j < own; j++) {
            squares[i] += row[j] * row[j];
            mixed[i] += dy.value[i * own + j] * row[j] * scale[j];
        }
        rstd = norm(want + i * own, row, scale, own);
        norm_backward(dwant + i * own, dw.value, dy.value + i * own, row, scale, rstd, own);
    }
    bench_ok(ops->heads_sum(&b->device, &sums, &from, &from, &none, 0, &err), &err);
    bench_check(b, "sums", &sums, squares);
    bench_ok(
        ops->heads_norm_forward(&b->device, &to, &from, &sums, &w.tensor, shift, own, EPS, &err),
        &err);
    bench_check(b, "y", &y, want);
    bench_ok(ops->heads_sum(&b->device, &products, &gradient, &from, &w.tensor, shift, &err), &err);
    bench_check(b, "products", &products, mixed);
    bench_ok(ops->heads_norm_backward(&b->device, &gradient, &dw.tensor, &gradient, &from, &sums,
                                      &products, &w.tensor, shift, own, EPS, &err),
             &err);
    bench_check(b, "dx in place of dy", &dy.tensor, dwant);
    bench_check(b, "dw", &dw.tensor, dw.value);
}
