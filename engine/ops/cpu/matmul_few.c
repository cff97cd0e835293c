#include "engine/ops/cpu/ops_int.h"

#include "engine/ops/cpu/tile_int.h"

/* Rows of w at a time: ONE with one row of x, so that independent sums hide the latency; MEMORY with the only row of x,
 * when w comes from memory: few, so that it is read in order, and the processor hides the latency where a row has few
 * additions; SOME with ROWS rows of x, so that all sums fit the registers. */
#define ONE      8
#define MEMORY   (DT_TILE_LANES == 16 ? 1 : 2)
#define SOME     4
#define ROWS     (DT_TILE_LANES == 16 ? 4 : 3)
#define ROWS_MAX 4
#define LANES    DT_TILE_LANES
#define STEP     (2 * LANES) /* values of k per step: two vectors */
#define BLOCK    16 /* columns of y that are written at a time; a multiple of LANES, ONE and SOME */
#define GROUP    16 /* rows of x that a block of w is multiplied with at a time */

/* Bytes from what is read of w to what is prefetched, with the only row of x. */
#define AHEAD 4096

/* Least bytes of w in a piece of the only row's product. */
#define PIECE_BYTES 16384

/* Values of k at a time: this part of GROUP rows of x and of BLOCK rows of w, widened, fits the L1 cache. */
#define CHUNK 256

typedef dt_tile_vector vector;
typedef uint32_t words __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

typedef struct few {
    const dt_cpu_product *product;
    int64_t whole;  /* k, rounded down to whole steps */
    const float *x; /* (m,k) in fp32; for BF16 in the order of step_of() */
    const void *w, *bias;
    void *y;
    float *scratch;     /* BLOCK * CHUNK floats for each thread */
    int64_t piece_rows; /* rows of w in a piece of the only row's product */
} few;

/* Memory that is prefetched, `step` bytes for every LANES values of k. */
typedef struct coming {
    const char *from;
    int64_t step;
} coming;

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

/* Adds the products of a row of x with `count` rows of w to `sums`, or to 0 if `fresh`, over n values of k, which are
 * whole steps. Lane l of a sum takes every LANES-th product from l on, in order, as in add_rows(). next: what is
 * prefetched, a line for each that is read. */
static inline __attribute__((always_inline)) void add_row(vector *sums, const float *x,
                                                          const void *const *w, const int count,
                                                          int64_t n, const char *next, bool fresh,
                                                          const dt_dtype type)
{
    const int64_t bytes = type == DT_F32 ? 4 : 2;
    vector s[ONE];

#pragma GCC unroll 8
    for (int o = 0; o < count; o++)
        s[o] = fresh ? (vector){0} : sums[o];
    for (int64_t p = 0; p < n; p += STEP) {
        const step left = step_of(x, p, DT_F32);

#pragma GCC unroll 8
        for (int o = 0; o < count; o++) {
            const step right = step_of(w[o], p, type);

            for (int64_t b = 0; next != NULL && b < STEP * bytes; b += 64)
                if ((o * STEP * bytes + b) % 64 == 0) /* once a line */
                    __builtin_prefetch(next + p * bytes * count + o * STEP * bytes + b);
            s[o] += left.half[0] * right.half[0];
            s[o] += left.half[1] * right.half[1];
        }
    }
#pragma GCC unroll 8
    for (int o = 0; o < count; o++)
        sums[o] = s[o];
}

/* The same for ROWS rows of x, k apart, and SOME rows of w. The sums of a row are BLOCK after those of the previous
 * one. */
static inline void add_rows(vector *sums, const float *x, int64_t k, const void *const *w,
                            int64_t n, coming next, bool fresh)
{
    vector s[ROWS_MAX * SOME];

#pragma GCC unroll 16
    for (int i = 0; i < ROWS * SOME; i++)
        s[i] = fresh ? (vector){0} : sums[i / SOME * BLOCK + i % SOME];
    for (int64_t p = 0; p < n; p += LANES, next.from += next.step) {
        vector left[ROWS_MAX];

        for (int64_t b = 0; b < next.step; b += 64)
            __builtin_prefetch(next.from + b, 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            left[i] = *(const vector *)(x + i * k + p);
#pragma GCC unroll 8
        for (int o = 0; o < SOME; o++) {
            const vector right = *(const vector *)((const float *)w[o] + p);

#pragma GCC unroll 8
            for (int i = 0; i < ROWS; i++)
                s[i * SOME + o] += left[i] * right;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS * SOME; i++)
        sums[i / SOME * BLOCK + i % SOME] = s[i];
}

/* Returns the start of row j + o of w. If fewer than o + 1 of `count` rows are left, the last row
 * is read again. */
static inline int64_t row_start(const few *f, int64_t j, int64_t count, int64_t o)
{
    return (j + dt_cpu_min(o, count - 1)) * f->product->k;
}

/* Returns how many values after those of a block the next one is prefetched; 0: none is left. */
static int64_t ahead_of(const few *f, int64_t j)
{
    return j + 2 * BLOCK <= f->product->n ? BLOCK * f->product->k : 0;
}

/* Multiplies the only row of x with `count` rows of w, which are read from memory once. What lies AHEAD bytes after a
 * row is prefetched: more of w, or of what follows it in memory. */
static void read_once(const few *f, vector *sums, int64_t j, int64_t count)
{
    const dt_cpu_product *p = f->product;
    int64_t bytes = p->type == DT_F32 ? 4 : 2;
    const void *w[MEMORY];

    for (int64_t at = 0; at < BLOCK; at += MEMORY) {
        for (int64_t o = 0; o < MEMORY; o++)
            w[o] = (const char *)f->w + row_start(f, j, count, at + o) * bytes;
        if (p->type == DT_BF16)
            add_row(sums + at, f->x, w, MEMORY, f->whole, (const char *)w[0] + AHEAD, true,
                    DT_BF16);
        else
            add_row(sums + at, f->x, w, MEMORY, f->whole, (const char *)w[0] + AHEAD, true, DT_F32);
    }
}

/* Multiplies rows of x with the rows w of a block, over n values of k. */
static void multiply_block(vector *sums, const float *x, int64_t rows, int64_t k,
                           const void *const *w, int64_t n, coming *next, bool fresh)
{
    int64_t i = 0;

    for (; i + ROWS <= rows; i += ROWS)
        for (int64_t o = 0; o < BLOCK; o += SOME) {
            add_rows(sums + i * BLOCK + o, x + i * k, k, w + o, n, *next, fresh);
            next->from += n / LANES * next->step;
        }
    for (; i < rows; i++)
        for (int64_t o = 0; o < BLOCK; o += ONE)
            add_row(sums + i * BLOCK + o, x + i * k, w + o, ONE, n, NULL, fresh, DT_F32);
}

/* Multiplies a group of rows of x with `count` rows of w from j on. */
static void read_block(const few *f, vector *sums, int64_t first, int64_t rows, int64_t j,
                       int64_t count, coming *next, float *scratch)
{
    const dt_cpu_product *p = f->product;
    int64_t ahead = first == 0 ? ahead_of(f, j) : 0;
    const void *w[BLOCK];

    for (int64_t at = 0; at < f->whole; at += CHUNK) {
        int64_t n = dt_cpu_min(CHUNK, f->whole - at);

        for (int64_t o = 0; o < BLOCK; o++)
            w[o] = o < count ? steps_of(f->w, p->type, row_start(f, j, count, o) + at, n, ahead,
                                        scratch + o * CHUNK)
                             : w[count - 1];
        multiply_block(sums, f->x + first * p->k + at, rows, p->k, w, n, next, at == 0);
    }
}

/* Returns what to prefetch while all rows of x are multiplied with rows j .. j + BLOCK - 1 of w, if w is read in
 * place: the next block, in equal parts. Otherwise steps_of() prefetches. */
static coming coming_after(const few *f, int64_t j)
{
    const dt_cpu_product *p = f->product;
    int64_t bytes = p->type == DT_F32 ? ahead_of(f, j) * (int64_t)sizeof(float) : 0;
    int64_t steps = p->m / ROWS * (BLOCK / SOME) * (f->whole / LANES);

    if (bytes == 0 || steps == 0)
        return (coming){0};
    return (coming){(const char *)f->w + (size_t)(j + BLOCK) * (size_t)p->k * sizeof(float),
                    (bytes + steps - 1) / steps};
}

/* Multiplies the values of k after the last whole step, filled up with zeros. */
static void read_rest(const few *f, vector *sums, int64_t first, int64_t count_x, int64_t j,
                      int64_t count)
{
    const dt_cpu_product *p = f->product;
    float rows[BLOCK][STEP] = {{0}}, x[STEP] = {0};
    int64_t n = p->k - f->whole;
    const void *w[BLOCK];

    for (int64_t o = 0; o < BLOCK; o++) {
        const float *row = wide(f->w, p->type, row_start(f, j, count, o) + f->whole, n, rows[o]);

        memmove(rows[o], row, (size_t)n * sizeof *row);
        w[o] = rows[o];
    }
    for (int64_t i = 0; i < count_x; i++) {
        memcpy(x, f->x + (first + i) * p->k + f->whole, (size_t)n * sizeof *x);
        for (int64_t o = 0; o < BLOCK; o += ONE)
            add_row(sums + i * BLOCK + o, x, w + o, ONE, STEP, NULL, f->whole == 0, DT_F32);
    }
}

/* LANE: the lane of two vectors, numbered one after the other, that becomes lane l of a vector of their lower halves of
 * `half` lanes each. LANES_OF: those of a whole vector; `to` is `half` for the upper halves. */
#define LANE(l, half) ((l) / (half)*2 * (half) + (l) % (half))
#if DT_TILE_LANES == 16
#define LANES_OF(half, to)                                                                \
    LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to,       \
        LANE(4, half) + to, LANE(5, half) + to, LANE(6, half) + to, LANE(7, half) + to,   \
        LANE(8, half) + to, LANE(9, half) + to, LANE(10, half) + to, LANE(11, half) + to, \
        LANE(12, half) + to, LANE(13, half) + to, LANE(14, half) + to, LANE(15, half) + to
#elif DT_TILE_LANES == 8
#define LANES_OF(half, to)                                                          \
    LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to, \
        LANE(4, half) + to, LANE(5, half) + to, LANE(6, half) + to, LANE(7, half) + to
#else
#define LANES_OF(half, to) \
    LANE(0, half) + to, LANE(1, half) + to, LANE(2, half) + to, LANE(3, half) + to
#endif

/* Each of LANES vectors becomes the sum of its lanes: lane l is added to lane l + LANES / 2, then of what is left the
 * same, and so on. A stage does that for two vectors, whose halves become one vector. */
#define STAGE(v, half)                                                            \
    for (int i = 0; i < 2 * (half); i += 2)                                       \
    (v)[i / 2] = __builtin_shufflevector((v)[i], (v)[i + 1], LANES_OF(half, 0)) + \
                 __builtin_shufflevector((v)[i], (v)[i + 1], LANES_OF(half, half))

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

/* Writes columns j .. j + count - 1 of a group of rows of y. */
static void write_block(const few *f, float *block, int64_t first, int64_t rows, int64_t j,
                        int64_t count, float *scratch)
{
    const dt_cpu_product *p = f->product;
    dt_tensor y = dt_tensor_1d(f->y, p->c_type, p->m * p->n);
    float bias[BLOCK] = {0};

    if (p->bias)
        memcpy(bias, wide(f->bias, p->type, j, count, scratch), (size_t)count * sizeof(bias[0]));
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (first + i) * p->n + j;
        float *row = block + i * BLOCK;

        for (int64_t o = 0; o < BLOCK; o++)
            row[o] += bias[o];
        if (p->c_type == DT_F32)
            memcpy(dt_row_open(&y, at, row), row, (size_t)count * sizeof *row);
        else
            dt_row_close(&y, at, count, row);
    }
}

/* Computes columns j .. j + count - 1 of all rows of y. */
static void columns(const few *f, int64_t j, int64_t count, float *scratch)
{
    const dt_cpu_product *p = f->product;
    coming next = coming_after(f, j);
    vector sums[GROUP * BLOCK];
    float block[GROUP * BLOCK];

    for (int64_t first = 0; first < p->m; first += GROUP) {
        int64_t rows = dt_cpu_min(GROUP, p->m - first);

        if (p->m == 1 && p->type != DT_F16)
            read_once(f, sums, j, count);
        else
            read_block(f, sums, first, rows, j, count, &next, scratch);
        if (f->whole < p->k)
            read_rest(f, sums, first, rows, j, count);
        for (int64_t i = 0; i < rows * BLOCK; i += LANES)
            *(vector *)(block + i) = sums_of(sums + i);
        write_block(f, block, first, rows, j, count, scratch);
    }
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

/* Implements dt_cpu_piece. */
static void run_piece(void *self, int thread, int64_t piece)
{
    const few *f = self;
    int64_t begin = piece * f->piece_rows, end = dt_cpu_min(begin + f->piece_rows, f->product->n);

    for (int64_t j = begin; j < end; j += BLOCK)
        columns(f, j, dt_cpu_min(BLOCK, end - j), f->scratch + BLOCK * CHUNK * thread);
}

/* Multiplies the only row of x, in pieces. */
static dt_status multiply_row(dt_device *device, few *f, dt_error *err)
{
    const dt_cpu_product *p = f->product;
    int64_t row_bytes = p->k * (int64_t)dt_dtype_bytes(p->type);
    int64_t rows = PIECE_BYTES / row_bytes, most = (p->n - 1) / DT_CPU_TEAM_PIECES + 1;

    f->piece_rows = dt_cpu_round_up(rows > most ? rows : most, BLOCK);
    return dt_cpu_pieces_run(device, p->n * p->k, run_piece, f, (p->n - 1) / f->piece_rows + 1,
                             dt_cpu_coming_after(device, f->w, (size_t)(p->n * row_bytes)), err);
}

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err)
{
    int64_t m = product->m, n = product->n, k = product->k, each = BLOCK * CHUNK;
    few f = {.product = product, .whole = k / STEP * STEP, .w = w, .bias = bias, .y = y};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(m <= DT_CPU_FEW_ROWS && product->b_transposed && !product->accumulate);
    /* one block per thread, then one for x */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, each + m * k / device->threads + 16, err));
    f.scratch = scratch.base;
    f.x = rows_of(&f, x, scratch.base + each * device->threads);
    if (m == 1)
        return multiply_row(device, &f, err);
#pragma omp parallel num_threads(dt_cpu_threads(device, n *k))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, BLOCK);
        float *mine = scratch.base + each * omp_get_thread_num();

        for (int64_t j = share.begin; j < share.end; j += BLOCK)
            columns(&f, j, dt_cpu_min(BLOCK, share.end - j), mine);
    }
out:
    return st;
}
