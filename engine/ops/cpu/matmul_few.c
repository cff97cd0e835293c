#include "engine/ops/cpu/matmul_int.h"

#include "engine/ops/cpu/rows_int.h"
#include "engine/ops/cpu/tile_int.h"

#include "base/banned.h"

/* Rows of w at a time: ONE with one row of x, so that independent sums hide the latency; SOME with
 * ROWS rows of x, so that all sums fit the registers. */
#define ONE      8
#define SOME     4
#define ROWS     (DT_TILE_LANES == 16 ? 4 : 3)
#define ROWS_MAX 4
#define SUMS     (SOME * ROWS_MAX) /* sums in registers; at least ONE */
#define LANES    DT_TILE_LANES
#define STEP     (2 * LANES) /* values of k per step: two vectors */
#define BLOCK    16 /* columns of y that are written at a time; a multiple of ONE and SOME */

/* Values of k at a time: this part of x and of SOME rows of w, widened, fits the L1 cache. */
#define CHUNK 256

typedef dt_tile_vector vector;
typedef int32_t lanes __attribute__((vector_size(4 * LANES)));
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

/* Like wide(), for whole steps; the values of BF16 are in the order of step_of(). ahead: values from those
 * that are read to those that are prefetched; 0: no prefetch. */
static inline const float *steps_of(const void *data, dt_dtype type, int64_t start, int64_t n,
                                    int64_t ahead, float *scratch)
{
    if (type != DT_BF16)
        return wide(data, type, start, n, scratch);
    for (int64_t p = 0; p < n; p += STEP) {
        const step s = step_of(data, start + p, DT_BF16);

        if (ahead > 0)
            __builtin_prefetch((const uint16_t *)data + start + p + ahead);
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
            vector left[ROWS_MAX];

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
    int64_t ahead = j + 2 * outputs <= p->n ? outputs * p->k : 0, i = 0;
    const void *w[ONE];

    for (int64_t o = 0; o < outputs; o++)
        w[o] = o < count ? steps_of(f->w, p->type, row_start(f, j, count, o) + at, n, ahead,
                                    scratch + o * CHUNK)
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

/* The lanes of two vectors that lane l of the lower, or upper, halves comes from, where `half` lanes are a half. */
#define LANE(l, half) ((l) / (half)*2 * (half) + (l) % (half))
#if DT_TILE_LANES == 16
#define LANES_OF(half, to)                                                                     \
    {                                                                                          \
        LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to,        \
            LANE(4, half) + to, LANE(5, half) + to, LANE(6, half) + to, LANE(7, half) + to,    \
            LANE(8, half) + to, LANE(9, half) + to, LANE(10, half) + to, LANE(11, half) + to,  \
            LANE(12, half) + to, LANE(13, half) + to, LANE(14, half) + to, LANE(15, half) + to \
    }
#elif DT_TILE_LANES == 8
#define LANES_OF(half, to)                                                                 \
    {                                                                                      \
        LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to,    \
            LANE(4, half) + to, LANE(5, half) + to, LANE(6, half) + to, LANE(7, half) + to \
    }
#else
#define LANES_OF(half, to)                                                             \
    {                                                                                  \
        LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to \
    }
#endif

/* Each of LANES vectors becomes the sum of its lanes: lane l is added to lane l + LANES / 2, then of what is left the
 * same, and so on. A stage does that for two vectors, whose halves become one vector. */
#define STAGE(v, half)                                                             \
    for (int i = 0; i < 2 * (half); i += 2)                                        \
    (v)[i / 2] = __builtin_shuffle((v)[i], (v)[i + 1], (lanes)LANES_OF(half, 0)) + \
                 __builtin_shuffle((v)[i], (v)[i + 1], (lanes)LANES_OF(half, half))

static inline vector sums_of(vector *v)
{
#if DT_TILE_LANES == 16
    STAGE(v, 8);
#endif
#if DT_TILE_LANES >= 8
    STAGE(v, 4);
#endif
    STAGE(v, 2);
    STAGE(v, 1);
    return v[0];
}

/* Computes columns j .. j + count - 1 of all rows of y, into BLOCK columns of `out`. */
static inline __attribute__((always_inline)) void columns(const few *f, float *out, int64_t j,
                                                          int64_t count, float *scratch,
                                                          const int outputs)
{
    const dt_cpu_product *p = f->product;
    vector sums[DT_CPU_FEW_ROWS * ONE + LANES];
    float flat[DT_CPU_FEW_ROWS * ONE + LANES];

    memset(sums, 0, (size_t)(p->m * outputs + LANES) * sizeof *sums);
    if (p->m == 1 && p->type != DT_F16)
        read_once(f, sums, j, count);
    else
        for (int64_t at = 0; at < f->whole; at += CHUNK)
            read_chunk(f, sums, j, count, at, dt_cpu_min(CHUNK, f->whole - at), scratch, outputs);
    if (f->whole < p->k)
        read_rest(f, sums, j, count, outputs);
    for (int64_t i = 0; i < p->m * outputs; i += LANES)
        *(vector *)(flat + i) = sums_of(sums + i);
    for (int64_t i = 0; i < p->m; i++)
        memcpy(out + i * BLOCK, flat + i * outputs, (size_t)outputs * sizeof *out);
}

/* Writes columns j .. j + count - 1 of all rows of y. */
static void write_block(const few *f, float *block, int64_t j, int64_t count, float *scratch)
{
    const dt_cpu_product *p = f->product;
    dt_tensor y = dt_tensor_1d(f->y, p->c_type, p->m * p->n);
    float bias[BLOCK] = {0};

    if (p->bias)
        memcpy(bias, wide(f->bias, p->type, j, count, scratch), (size_t)count * sizeof(bias[0]));
    for (int64_t i = 0; i < p->m; i++) {
        float *row = block + i * BLOCK;

        for (int64_t o = 0; o < BLOCK; o++)
            row[o] += bias[o];
        if (p->c_type == DT_F32)
            memcpy(dt_row_open(&y, i * p->n + j, row), row, (size_t)count * sizeof *row);
        else
            dt_row_close(&y, i * p->n + j, count, row);
    }
}

static void columns_of_one(const few *f, float *out, int64_t j, int64_t count, float *scratch)
{
    for (int64_t o = 0; o < count; o += ONE)
        columns(f, out + o, j + o, dt_cpu_min(ONE, count - o), scratch, ONE);
}

static void columns_of_some(const few *f, float *out, int64_t j, int64_t count, float *scratch)
{
    for (int64_t o = 0; o < count; o += SOME)
        columns(f, out + o, j + o, dt_cpu_min(SOME, count - o), scratch, SOME);
}

/* Returns x as fp32; for BF16, whole steps are in the order of step_of(). */
static const float *rows_of(const few *f, const void *x, float *scratch)
{
    const dt_cpu_product *p = f->product;

    if (p->type == DT_F32)
        return x;
    for (int64_t i = 0; i < p->m; i++) {
        float *row = scratch + i * p->k;

        steps_of(x, p->type, i * p->k, f->whole, 0, row);
        wide(x, p->type, i * p->k + f->whole, p->k - f->whole, row + f->whole);
    }
    return scratch;
}

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err)
{
    int64_t m = product->m, n = product->n, k = product->k, each = ONE * CHUNK;
    few f = {.product = product, .whole = k / STEP * STEP, .w = w, .bias = bias, .y = y};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(m <= DT_CPU_FEW_ROWS && product->b_transposed && !product->accumulate);
    /* one block per thread, then one for x */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, each + m * k / device->threads + 16, err));
    f.x = rows_of(&f, x, scratch.base + each * device->threads);
#pragma omp parallel num_threads(dt_cpu_threads(device, n *k))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, BLOCK);
        float *mine = scratch.base + each * omp_get_thread_num();
        float block[DT_CPU_FEW_ROWS * BLOCK];

        for (int64_t j = share.begin; j < share.end; j += BLOCK) {
            int64_t count = dt_cpu_min(BLOCK, share.end - j);

            (m == 1 ? columns_of_one : columns_of_some)(&f, block, j, count, mine);
            write_block(&f, block, j, count, mine);
        }
    }
out:
    return st;
}
