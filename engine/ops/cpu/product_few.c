#include "engine/ops/cpu/product.h"

#include "engine/ops/cpu/cpu_int.h"

#if defined(__AVX512BF16__)

#include "engine/ops/cpu/product_int.h"

#define LANES DT_PRODUCT_LANES
#define STEP  (2 * LANES) /* values of k that an instruction multiplies */
#define ROWS  4           /* rows of x and rows of w at a time: 16 registers of sums */
#define BLOCK (4 * ROWS)  /* rows of w that the only row of x is multiplied with at a time */

/* Bytes from what is read of w to what is prefetched, with the only row of x. */
#define AHEAD 4096

/* Least bytes of w in a piece. */
#define PIECE_BYTES 16384

typedef struct few {
    const dt_cpu_product *product;
    const uint16_t *x, *w, *bias;
    void *y;
    int64_t piece_rows; /* rows of w in a piece */
} few;

static inline __m512i some_of(const uint16_t *row, __mmask32 some)
{
    return _mm512_maskz_loadu_epi16(some, row);
}

static inline __m512 add_products(__m512 sum, __m512i left, __m512i right)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)right);
}

static inline void prefetch(const char *from, int64_t lines)
{
    for (int64_t i = 0; i < lines; i++)
        _mm_prefetch(from + 64 * i, _MM_HINT_T0);
}

/* Adds up the lanes of each of 16 vectors: lane l and lane l + 8, then of what is left l and l + 4, and so on. Lane
 * 4 q + r of the result is the sum of vector 4 r + q. */
static inline __m512 sums_of(__m512 s[LANES])
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0x44),
                             _mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0xee));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(s[2 * i], s[2 * i + 1], 0xdd));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        s[i] = _mm512_add_ps(_mm512_shuffle_ps(s[2 * i], s[2 * i + 1], 0x44),
                             _mm512_shuffle_ps(s[2 * i], s[2 * i + 1], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(s[0], s[1], 0x88), _mm512_shuffle_ps(s[0], s[1], 0xdd));
}

/* --- the only row of x: rows of w one after the other, in the order of memory */

/* Computes columns j .. j + count - 1 of y, of at most BLOCK. What lies AHEAD bytes after a row is prefetched: more of
 * w, or of what follows it in memory. */
static void multiply_row(const few *f, int64_t j, int64_t count)
{
    int64_t k = f->product->k, whole = k / STEP * STEP;
    __mmask32 rest = ((__mmask32)1 << (k - whole)) - 1;
    __m512 s[LANES];

    for (int64_t o = 0; o < BLOCK; o++) {
        const uint16_t *w = f->w + (j + dt_cpu_min(o, count - 1)) * k;
        __m512 sum = _mm512_setzero_ps();

        for (int64_t p = 0; p < whole; p += STEP) {
            prefetch((const char *)(w + p) + AHEAD, 1);
            sum = add_products(sum, _mm512_loadu_si512(f->x + p), _mm512_loadu_si512(w + p));
        }
        if (rest != 0)
            sum = add_products(sum, some_of(f->x + whole, rest), some_of(w + whole, rest));
        s[o % 4 * 4 + o / 4] = sum; /* where sums_of() leads to lane o */
    }
    dt_product_write(f->product, f->y, j, sums_of(s), f->bias != NULL ? f->bias + j : NULL,
                     (__mmask16)(0xffff >> (BLOCK - count)));
}

/* --- several rows of x: ROWS of them and ROWS of w at a time */

/* Memory that is prefetched, so many lines for each step of k. */
typedef struct coming {
    const char *from;
    int64_t lines;
} coming;

/* Multiplies `rows` rows of x, k apart, with ROWS rows of w. Sum o * ROWS + i is that of row i of x and row o of w; those
 * of missing rows are zero. */
static inline __attribute__((always_inline)) void multiply(__m512 *sums, const uint16_t *x,
                                                           const uint16_t *const *w, int64_t k,
                                                           coming *next, const int rows)
{
    int64_t whole = k / STEP * STEP;
    __mmask32 rest = ((__mmask32)1 << (k - whole)) - 1;
    __m512 s[ROWS * ROWS];
    __m512i left[ROWS];

#pragma GCC unroll 16
    for (int i = 0; i < ROWS * ROWS; i++)
        s[i] = _mm512_setzero_ps();
    for (int64_t p = 0; p < whole; p += STEP, next->from += 64 * next->lines) {
        prefetch(next->from, next->lines);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            left[i] = _mm512_loadu_si512(x + i * k + p);
#pragma GCC unroll 4
        for (int o = 0; o < ROWS; o++) {
            const __m512i right = _mm512_loadu_si512(w[o] + p);

#pragma GCC unroll 4
            for (int i = 0; i < rows; i++)
                s[o * ROWS + i] = add_products(s[o * ROWS + i], left[i], right);
        }
    }
    if (rest != 0) {
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            left[i] = some_of(x + i * k + whole, rest);
#pragma GCC unroll 4
        for (int o = 0; o < ROWS; o++) {
            const __m512i right = some_of(w[o] + whole, rest);

#pragma GCC unroll 4
            for (int i = 0; i < rows; i++)
                s[o * ROWS + i] = add_products(s[o * ROWS + i], left[i], right);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS * ROWS; i++)
        sums[i] = s[i];
}

/* Writes ROWS columns, or fewer, of a row of y. */
static inline void write_row(const few *f, int64_t at, __m128 sum, __m128 bias, __mmask8 some)
{
    sum = _mm_add_ps(sum, bias);
    if (f->product->c_type == DT_F32)
        _mm_mask_storeu_ps((float *)f->y + at, some, sum);
    else
        _mm_mask_storeu_epi16((uint16_t *)f->y + at, some, (__m128i)_mm_cvtneps_pbh(sum));
}

/* Computes columns j .. j + count - 1 of all rows of y, of at most ROWS. */
static void multiply_rows(const few *f, int64_t j, int64_t count)
{
    int64_t m = f->product->m, n = f->product->n, k = f->product->k;
    int64_t groups = (m + ROWS - 1) / ROWS, bytes = ROWS * k * 2;
    __mmask8 some = (__mmask8)((1 << count) - 1);
    const uint16_t *w[ROWS];
    __m128 bias = _mm_setzero_ps();
    /* the next two blocks of w: one is on its way when it is needed */
    coming next = {(const char *)(f->w + j * k) + 2 * bytes, (ROWS + groups - 1) / groups};
    __m512 s[LANES];

    for (int64_t o = 0; o < ROWS; o++)
        w[o] = f->w + (j + dt_cpu_min(o, count - 1)) * k;
    if (f->bias != NULL)
        bias = (__m128)_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_maskz_loadu_epi16(some, f->bias + j)),
                                      16);
    for (int64_t i = 0; i < m; i += ROWS) {
        int64_t rows = dt_cpu_min(ROWS, m - i);
        const uint16_t *x = f->x + i * k;
        float block[LANES] __attribute__((aligned(64)));

        if (rows == 4)
            multiply(s, x, w, k, &next, 4);
        else if (rows == 3)
            multiply(s, x, w, k, &next, 3);
        else if (rows == 2)
            multiply(s, x, w, k, &next, 2);
        else
            multiply(s, x, w, k, &next, 1);
        _mm512_store_ps(block, sums_of(s));
        for (int64_t l = 0; l < rows; l++)
            write_row(f, (i + l) * n + j, _mm_load_ps(block + ROWS * l), bias, some);
        if (i / ROWS + 1 == ROWS / next.lines)
            next.lines = 0; /* the next rows of w are on their way */
    }
}

/* Implements dt_cpu_piece. */
static void run_piece(void *self, int thread, int64_t piece)
{
    const few *f = self;
    int64_t step = f->product->m == 1 ? BLOCK : ROWS;
    int64_t begin = piece * f->piece_rows, end = dt_cpu_min(begin + f->piece_rows, f->product->n);

    (void)thread;
    for (int64_t j = begin; j < end; j += step)
        (f->product->m == 1 ? multiply_row : multiply_rows)(f, j, dt_cpu_min(step, end - j));
}

dt_status dt_cpu_product_few(dt_device *device, const dt_cpu_product *product, void *y,
                             const void *x, const void *w, const void *bias, dt_error *err)
{
    int64_t n = product->n, row_bytes = product->k * 2;
    int64_t rows = PIECE_BYTES / row_bytes, most = (n - 1) / DT_CPU_TEAM_PIECES + 1;
    few f = {.product = product, .x = x, .w = w, .bias = product->bias ? bias : NULL, .y = y};

    DT_ASSERT(product->type == DT_BF16 && product->b_transposed && !product->accumulate);
    f.piece_rows = dt_cpu_round_up(rows > most ? rows : most, BLOCK);
    return dt_cpu_pieces_run(device, n * product->k, run_piece, &f, (n - 1) / f.piece_rows + 1,
                             dt_cpu_coming_after(device, w, (size_t)(n * row_bytes)), err);
}

#else

dt_status dt_cpu_product_few(dt_device *device, const dt_cpu_product *product, void *y,
                             const void *x, const void *w, const void *bias, dt_error *err)
{
    (void)device, (void)product, (void)y, (void)x, (void)w, (void)bias;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "this build has no products of AVX512_BF16");
}

#endif
