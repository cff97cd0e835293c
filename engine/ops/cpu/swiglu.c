/* swiglu: computes y = a sigmoid(a) b, where a and b are the halves of a row (Shazeer 2020,
 * https://arxiv.org/abs/2002.05202).
 *
 * Formula    with s = sigmoid(a):  da = dy b s (1 + a (1 - s))    db = dy a s
 */
#include "engine/ops/cpu/math_int.h"
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#define WORK 8 /* cost of an element, relative to one addition */

static void gate_row(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = a[j] * dt_sigmoid(a[j]) * b[j];
}

/* da may be a, db may be b. */
static void gate_row_backward(float *da, float *db, const float *dy, const float *a, const float *b,
                              int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        float gate = a[j], s = dt_sigmoid(gate), dup = dy[j] * gate * s;

        da[j] = dy[j] * b[j] * s * (1.0f + gate * (1.0f - s));
        db[j] = dup;
    }
}

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

dt_status DT_CPU_NAME(swiglu_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                      dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(y), f = dt_tensor_cols(y);
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(x) == 2 * n * f && dt_tensor_cols(x) == 2 * f);
    DT_TRY(dt_row_check(x, "swiglu", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *f *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n * pieces_of(f), 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            piece p = piece_at(i, f);
            int64_t at = p.row * f + p.column, a = at + p.row * f;
            float *out = dt_row_open(y, at, mine);

            gate_row(out, dt_row_read(x, a, p.n, mine + DT_ROW_CHUNK),
                     dt_row_read(x, a + f, p.n, mine + 2 * DT_ROW_CHUNK), p.n);
            dt_row_close(y, at, p.n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(swiglu_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                       const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(dy), f = dt_tensor_cols(dy);
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(x) == 2 * n * f && dt_tensor_elems(dx) == 2 * n * f);
    DT_TRY(dt_row_check(x, "swiglu", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 5 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *f *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n * pieces_of(f), 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            piece p = piece_at(i, f);
            int64_t at = p.row * f + p.column, a = at + p.row * f;
            float *da = dt_row_open(dx, a, mine);
            float *db = dt_row_open(dx, a + f, mine + DT_ROW_CHUNK);

            gate_row_backward(da, db, dt_row_read(dy, at, p.n, mine + 2 * DT_ROW_CHUNK),
                              dt_row_read(x, a, p.n, mine + 3 * DT_ROW_CHUNK),
                              dt_row_read(x, a + f, p.n, mine + 4 * DT_ROW_CHUNK), p.n);
            dt_row_close(dx, a, p.n, da);
            dt_row_close(dx, a + f, p.n, db);
        }
    }
out:
    return st;
}
