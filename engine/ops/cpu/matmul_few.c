#include "engine/ops/cpu/matmul_int.h"

#include "engine/ops/cpu/rows_int.h"
#include "engine/ops/cpu/tile_int.h"

#include "base/banned.h"

/* Rows of w at a time: ONE with one row of x, so that independent sums hide the latency; SOME with
 * ROWS rows of x, so that all sums fit the registers. */
#define ONE   8
#define SOME  4
#define ROWS  3
#define SUMS  (SOME * ROWS) /* sums in registers; at least ONE */
#define LANES DT_TILE_LANES
#define STEP  (2 * LANES) /* values of k per step: two vectors */

/* Values of k at a time: this part of x and of SOME rows of w, widened, fits the L1 cache. */
#define CHUNK 256

typedef dt_tile_vector vector;
typedef uint32_t words __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

typedef struct few {
    const dt_cpu_product *product;
    int64_t whole;  /* k, rounded down to whole steps */
    const float *x; /* (m,k) in fp32; for BF16 in the order of step_of() */
    const void *w, *bias;
    void *y;
} few;

/* The two vectors of a step. For BF16, half[0] has the elements 0 2 4 .. and half[1] the elements 1
 * 3 5 .. of the step: this order costs least to widen. x and w are in the same order. */
typedef struct step {
    vector half[2];
} step;

static inline __attribute__((always_inline)) step step_of(const void *data, int64_t at,
                                                          const dt_dtype type)
{
    const float *floats = (const float *)data + at;
    step s = {{{0}}};

    if (type == DT_F32) {
        s.half[0] = *(const vector *)floats;
        s.half[1] = *(const vector *)(floats + LANES);
    } else {
        const words both = *(const words *)((const uint16_t *)data + at);

        s.half[0] = (vector)(both << 16);
        s.half[1] = (vector)(both & 0xffff0000u);
    }
    return s;
}

/* Returns n values from `start` on as fp32, in their order: in place, or widened into scratch. */
static inline const float *wide(const void *data, dt_dtype type, int64_t start, int64_t n,
                                float *scratch)
{
    if (type == DT_F32)
        return (const float *)data + start;
    dt_row_widen(scratch, (const uint16_t *)data + start, type, n);
    return scratch;
}

/* Like wide(), for whole steps; the values of BF16 are in the order of step_of(). */
static inline const float *steps_of(const void *data, dt_dtype type, int64_t start, int64_t n,
                                    float *scratch)
{
    if (type != DT_BF16)
        return wide(data, type, start, n, scratch);
    for (int64_t p = 0; p < n; p += STEP) {
        const step s = step_of(data, start + p, DT_BF16);

        *(vector *)(scratch + p) = s.half[0];
        *(vector *)(scratch + p + LANES) = s.half[1];
    }
    return scratch;
}

/* Adds the products of `rows` rows of x, `stride` apart, with `outputs` rows of w, over n values of
 * k, which are whole steps. Lane l of a sum takes every LANES-th product from l on, in order,
 * whatever `rows` and `outputs` are. ahead: bytes from the values of w that are read to those that
 * are prefetched; 0: no prefetch. */
static inline __attribute__((always_inline)) void add_products(vector *sums, const float *x,
                                                               int64_t stride, const void *const *w,
                                                               int64_t n, int64_t ahead,
                                                               const dt_dtype type, const int rows,
                                                               const int outputs)
{
    const int64_t bytes = type == DT_F32 ? 4 : 2;
    vector s[SUMS];

#pragma GCC unroll 16
    for (int i = 0; i < rows * outputs; i++)
        s[i] = sums[i];
    for (int64_t p = 0; p < n; p += STEP) {
#pragma GCC unroll 8
        for (int o = 0; rows == 1 && o < outputs; o++) {
            const step left = step_of(x, p, DT_F32), right = step_of(w[o], p, type);

            if (ahead > 0 && p * bytes % 64 == 0)
                __builtin_prefetch((const char *)w[o] + p * bytes + ahead);
            s[o] += left.half[0] * right.half[0];
            s[o] += left.half[1] * right.half[1];
        }
        for (int half = 0; rows > 1 && half < 2; half++) {
            const int64_t q = p + half * LANES;
            vector left[ROWS];

#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                left[i] = *(const vector *)(x + i * stride + q);
#pragma GCC unroll 8
            for (int o = 0; o < outputs; o++) {
                const vector right = *(const vector *)((const float *)w[o] + q);

#pragma GCC unroll 8
                for (int i = 0; i < rows; i++)
                    s[i * outputs + o] += left[i] * right;
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows * outputs; i++)
        sums[i] = s[i];
}

/* Returns the start of row j + o of w. If fewer than o + 1 of `count` rows are left, the last row
 * is read again. */
static inline int64_t row_start(const few *f, int64_t j, int64_t count, int64_t o)
{
    return (j + dt_cpu_min(o, count - 1)) * f->product->k;
}

/* Multiplies the only row of x with rows of w, which are read from memory once; the rows after them
 * are prefetched. */
static inline void read_once(const few *f, vector *sums, int64_t j, int64_t count)
{
    const dt_cpu_product *p = f->product;
    int64_t bytes = p->type == DT_F32 ? 4 : 2;
    int64_t ahead = j + 2 * ONE <= p->n ? ONE * p->k * bytes : 0;
    const void *w[ONE];

    for (int64_t o = 0; o < ONE; o++)
        w[o] = (const char *)f->w + row_start(f, j, count, o) * bytes;
    if (p->type == DT_BF16)
        add_products(sums, f->x, 0, w, f->whole, ahead, DT_BF16, 1, ONE);
    else
        add_products(sums, f->x, 0, w, f->whole, ahead, DT_F32, 1, ONE);
}

/* Multiplies n values of k from `at` on; the values of w are widened into scratch first. */
static inline __attribute__((always_inline)) void read_chunk(const few *f, vector *sums, int64_t j,
                                                             int64_t count, int64_t at, int64_t n,
                                                             float *scratch, const int outputs)
{
    const dt_cpu_product *p = f->product;
    const void *w[ONE];
    int64_t i = 0;

    for (int64_t o = 0; o < outputs; o++)
        w[o] = o < count
                   ? steps_of(f->w, p->type, row_start(f, j, count, o) + at, n, scratch + o * CHUNK)
                   : w[count - 1];
    for (; outputs == SOME && i + ROWS <= p->m; i += ROWS)
        add_products(sums + i * outputs, f->x + i * p->k + at, p->k, w, n, 0, DT_F32, ROWS,
                     outputs);
    for (; i < p->m; i++)
        add_products(sums + i * outputs, f->x + i * p->k + at, p->k, w, n, 0, DT_F32, 1, outputs);
}

/* Multiplies the values of k after the last whole step, filled up with zeros. */
static inline __attribute__((always_inline)) void read_rest(const few *f, vector *sums, int64_t j,
                                                            int64_t count, const int outputs)
{
    const dt_cpu_product *p = f->product;
    float rows[ONE][STEP] = {{0}}, x[STEP] = {0};
    int64_t n = p->k - f->whole;
    const void *w[ONE];

    for (int64_t o = 0; o < outputs; o++) {
        const float *row = wide(f->w, p->type, row_start(f, j, count, o) + f->whole, n, rows[o]);

        memmove(rows[o], row, (size_t)n * sizeof *row);
        w[o] = rows[o];
    }
    for (int64_t i = 0; i < p->m; i++) {
        memcpy(x, f->x + i * p->k + f->whole, (size_t)n * sizeof *x);
        add_products(sums + i * outputs, x, 0, w, STEP, 0, DT_F32, 1, outputs);
    }
}

static inline float sum_of(vector lanes)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* Computes columns j .. j + count - 1 of all rows of y. */
static inline __attribute__((always_inline)) void columns(const few *f, int64_t j, int64_t count,
                                                          float *scratch, const int outputs)
{
    const dt_cpu_product *p = f->product;
    vector sums[DT_CPU_FEW_ROWS * ONE];
    dt_tensor y = dt_tensor_1d(f->y, p->c_type, p->m * p->n);
    float bias[ONE] = {0};

    memset(sums, 0, (size_t)(p->m * outputs) * sizeof *sums);
    if (p->m == 1 && p->type != DT_F16)
        read_once(f, sums, j, count);
    else
        for (int64_t at = 0; at < f->whole; at += CHUNK)
            read_chunk(f, sums, j, count, at, dt_cpu_min(CHUNK, f->whole - at), scratch, outputs);
    if (f->whole < p->k)
        read_rest(f, sums, j, count, outputs);
    if (p->bias)
        memcpy(bias, wide(f->bias, p->type, j, count, scratch), (size_t)count * sizeof(bias[0]));
    for (int64_t i = 0; i < p->m; i++) {
        float *out = dt_row_open(&y, i * p->n + j, scratch);

        for (int64_t o = 0; o < count; o++)
            out[o] = sum_of(sums[i * outputs + o]) + bias[o];
        dt_row_close(&y, i * p->n + j, count, out);
    }
}

static void columns_of_one(const few *f, int64_t j, int64_t count, float *scratch)
{
    columns(f, j, count, scratch, ONE);
}

static void columns_of_some(const few *f, int64_t j, int64_t count, float *scratch)
{
    columns(f, j, count, scratch, SOME);
}

/* Returns x as fp32; for BF16, whole steps are in the order of step_of(). */
static const float *rows_of(const few *f, const void *x, float *scratch)
{
    const dt_cpu_product *p = f->product;

    if (p->type == DT_F32)
        return x;
    for (int64_t i = 0; i < p->m; i++) {
        float *row = scratch + i * p->k;

        steps_of(x, p->type, i * p->k, f->whole, row);
        wide(x, p->type, i * p->k + f->whole, p->k - f->whole, row + f->whole);
    }
    return scratch;
}

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err)
{
    int64_t m = product->m, n = product->n, k = product->k, each = ONE * CHUNK;
    int64_t together = m == 1 ? ONE : SOME;
    few f = {.product = product, .whole = k / STEP * STEP, .w = w, .bias = bias, .y = y};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(m <= DT_CPU_FEW_ROWS && product->b_transposed && !product->accumulate);
    /* one block per thread, then one for x */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, each + m * k / device->threads + 16, err));
    f.x = rows_of(&f, x, scratch.base + each * device->threads);
#pragma omp parallel num_threads(dt_cpu_threads(device, n *k))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, together);
        float *mine = scratch.base + each * omp_get_thread_num();

        for (int64_t j = share.begin; j < share.end; j += together)
            (m == 1 ? columns_of_one : columns_of_some)(&f, j, dt_cpu_min(together, share.end - j),
                                                        mine);
    }
out:
    return st;
}
