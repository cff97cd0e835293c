/* activation: the functions between two products: activations, gates, and soft caps.
 *
 * GELU       y = x Phi(x), dy/dx = Phi(x) + x phi(x); Phi the normal distribution, phi its density
 * GELU_TANH  y = 0.5 x (1 + tanh(u)) = x sigmoid(2u),  u = sqrt(2/pi) (x + 0.044715 x^3)
 *            dy/dx = s + x s (1-s) 2 u',  s = sigmoid(2u)
 *            The sigmoid keeps its relative precision for large negative x, where 1 + tanh
 *            cancels. Both: Hendrycks and Gimpel 2016
 * RELU       y = max(x, 0), dy/dx = [x > 0]
 * TANH       y = tanh(x), dy/dx = 1 - y^2 = 4 s(2x) s(-2x), s the sigmoid: 1 - y^2 would cancel to
 *            0 for large |x|
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"

#define SLOPE           1.5957691216057308f /* 2 sqrt(2/pi) */
#define CUBIC           0.044715f
#define DENSITY         0.3989422804014327f /* 1/sqrt(2 pi) */
#define ACTIVATION_WORK 8                   /* cost of an element, relative to one addition */

static void gelu_row(float *y, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * dt_normal(x[i], dt_bell(x[i]));
}

static void gelu_row_backward(float *dx, const float *dy, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float bell = dt_bell(x[i]);
        dx[i] = dy[i] * (dt_normal(x[i], bell) + x[i] * bell * DENSITY);
    }
}

static void gelu_tanh_row(float *y, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * dt_sigmoid(SLOPE * (x[i] + CUBIC * x[i] * x[i] * x[i]));
}

static void gelu_tanh_row_backward(float *dx, const float *dy, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float square = x[i] * x[i];
        float s = dt_sigmoid(SLOPE * (x[i] + CUBIC * x[i] * square));
        float slope = SLOPE * (1.0f + 3.0f * CUBIC * square);
        dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * slope);
    }
}

static void relu_row(float *y, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

static void relu_row_backward(float *dx, const float *dy, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0.0f ? dy[i] : 0.0f;
}

static void tanh_row(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = tanhf(x[i]);
}

static void tanh_row_backward(float *dx, const float *dy, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * 4.0f * dt_sigmoid(2.0f * x[i]) * dt_sigmoid(-2.0f * x[i]);
}

static const struct {
    void (*forward)(float *, const float *, int64_t);
    void (*backward)(float *, const float *, const float *, int64_t);
} rows[] = {
    [DT_ACTIVATION_GELU_TANH] = {gelu_tanh_row, gelu_tanh_row_backward},
    [DT_ACTIVATION_GELU] = {gelu_row, gelu_row_backward},
    [DT_ACTIVATION_RELU] = {relu_row, relu_row_backward},
    [DT_ACTIVATION_TANH] = {tanh_row, tanh_row_backward},
};

dt_status DT_CPU_NAME(activation_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                          dt_activation_kind kind, dt_error *err)
{
    void (*row)(float *, const float *, int64_t) = rows[kind].forward;
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "activation", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads( \
    dt_cpu_threads_rows(device, dt_tensor_rows(x), elems *ACTIVATION_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);

            row(out, dt_row_read(x, i, n, mine), n);
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(activation_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                           const dt_tensor *x, dt_activation_kind kind,
                                           dt_error *err)
{
    void (*row)(float *, const float *, const float *, int64_t) = rows[kind].backward;
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "activation", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems *ACTIVATION_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *out = dt_row_open(dx, i, mine + 2 * DT_ROW_CHUNK);

            row(out, dt_row_read(dy, i, n, mine + DT_ROW_CHUNK), dt_row_read(x, i, n, mine), n);
            dt_row_close(dx, i, n, out);
        }
    }
out:
    return st;
}

/* gate: computes y = f(a) b, where a and b are the halves of a row (Shazeer 2020,
 * https://arxiv.org/abs/2002.05202).
 *
 * Formula    SILU, with s = sigmoid(a):  da = dy b s (1 + a (1 - s))    db = dy a s
 *            GELU_TANH and GELU: f as above
 */

#define GATE_WORK 8 /* cost of an element, relative to one addition */

static void silu_gate(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = a[j] * dt_sigmoid(a[j]) * b[j];
}

/* da may be a, db may be b. */
static void silu_gate_backward(float *da, float *db, const float *dy, const float *a,
                               const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float gate = a[j], s = dt_sigmoid(gate), dup = dy[j] * gate * s;

        da[j] = dy[j] * b[j] * s * (1.0f + gate * (1.0f - s));
        db[j] = dup;
    }
}

static void gelu_tanh_gate(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = a[j] * dt_sigmoid(SLOPE * (a[j] + CUBIC * a[j] * a[j] * a[j])) * b[j];
}

static void gelu_tanh_gate_backward(float *da, float *db, const float *dy, const float *a,
                                    const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float x = a[j], square = x * x, s = dt_sigmoid(SLOPE * (x + CUBIC * x * square));
        float slope = SLOPE * (1.0f + 3.0f * CUBIC * square), dup = dy[j] * x * s;

        da[j] = dy[j] * b[j] * (s + x * s * (1.0f - s) * slope);
        db[j] = dup;
    }
}

static void gelu_gate(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = a[j] * dt_normal(a[j], dt_bell(a[j])) * b[j];
}

static void gelu_gate_backward(float *da, float *db, const float *dy, const float *a,
                               const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float x = a[j], bell = dt_bell(x), below = dt_normal(x, bell), dup = dy[j] * x * below;

        da[j] = dy[j] * b[j] * (below + x * bell * DENSITY);
        db[j] = dup;
    }
}

static const struct {
    void (*forward)(float *, const float *, const float *, int64_t);
    void (*backward)(float *, float *, const float *, const float *, const float *, int64_t);
} gates[] = {
    [DT_GATE_SILU] = {silu_gate, silu_gate_backward},
    [DT_GATE_GELU_TANH] = {gelu_tanh_gate, gelu_tanh_gate_backward},
    [DT_GATE_GELU] = {gelu_gate, gelu_gate_backward},
};

/* A part of a row with at most DT_ROW_CHUNK columns; parts are numbered over all rows. */
typedef struct piece {
    int64_t row, column, n;
} piece;

static int64_t pieces_of(int64_t f)
{
    return (f + DT_ROW_CHUNK - 1) / DT_ROW_CHUNK;
}

static piece piece_at(int64_t i, int64_t f)
{
    piece p = {i / pieces_of(f), i % pieces_of(f) * DT_ROW_CHUNK, DT_ROW_CHUNK};

    if (p.n > f - p.column)
        p.n = f - p.column;
    return p;
}

dt_status DT_CPU_NAME(gate_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                    dt_gate_kind kind, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(y), f = dt_tensor_cols(y);
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(x) == 2 * n * f && dt_tensor_cols(x) == 2 * f);
    DT_TRY(dt_row_check(x, "gate", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads_rows(device, n, n *f *GATE_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n * pieces_of(f), 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            piece p = piece_at(i, f);
            int64_t at = p.row * f + p.column, a = at + p.row * f;
            float *out = dt_row_open(y, at, mine);

            gates[kind].forward(out, dt_row_read(x, a, p.n, mine + DT_ROW_CHUNK),
                                dt_row_read(x, a + f, p.n, mine + 2 * DT_ROW_CHUNK), p.n);
            dt_row_close(y, at, p.n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(gate_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                     const dt_tensor *x, dt_gate_kind kind, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(dy), f = dt_tensor_cols(dy);
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(x) == 2 * n * f && dt_tensor_elems(dx) == 2 * n * f);
    DT_TRY(dt_row_check(x, "gate", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 5 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *f *GATE_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n * pieces_of(f), 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            piece p = piece_at(i, f);
            int64_t at = p.row * f + p.column, a = at + p.row * f;
            float *da = dt_row_open(dx, a, mine);
            float *db = dt_row_open(dx, a + f, mine + DT_ROW_CHUNK);

            gates[kind].backward(da, db, dt_row_read(dy, at, p.n, mine + 2 * DT_ROW_CHUNK),
                                 dt_row_read(x, a, p.n, mine + 3 * DT_ROW_CHUNK),
                                 dt_row_read(x, a + f, p.n, mine + 4 * DT_ROW_CHUNK), p.n);
            dt_row_close(dx, a, p.n, da);
            dt_row_close(dx, a + f, p.n, db);
        }
    }
out:
    return st;
}

/* softcap: computes y = cap tanh(factor x / cap), or factor x. */

#define SOFTCAP_WORK 8

typedef struct cap {
    float factor, cap; /* cap 0: none */
} cap;

static void cap_row(float *y, const float *x, cap c, int64_t n)
{
    if (c.cap == 0.0f) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = c.factor * x[i];
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = c.cap * dt_tanh(c.factor * x[i] / c.cap);
}

static void cap_row_backward(float *dx, const float *dy, const float *y, cap c, int64_t n)
{
    if (c.cap == 0.0f) {
        cap_row(dx, dy, c, n);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float t = y[i] / c.cap;

        dx[i] = dy[i] * c.factor * (1.0f - t * t);
    }
}

dt_status DT_CPU_NAME(softcap_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                       double factor, double cap_of, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    cap c = {(float)factor, (float)cap_of};
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "softcap", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads( \
    dt_cpu_threads_rows(device, dt_tensor_rows(x), elems *SOFTCAP_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);

            cap_row(out, dt_row_read(x, i, n, mine), c, n);
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(softcap_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        const dt_tensor *y, double factor, double cap_of,
                                        dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(dy);
    cap c = {(float)factor, (float)cap_of};
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(dy, "softcap", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems *SOFTCAP_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *out = dt_row_open(dx, i, mine + 2 * DT_ROW_CHUNK);
            const float *was = c.cap == 0.0f ? NULL : dt_row_read(y, i, n, mine);

            cap_row_backward(out, dt_row_read(dy, i, n, mine + DT_ROW_CHUNK), was, c, n);
            dt_row_close(dx, i, n, out);
        }
    }
out:
    return st;
}
