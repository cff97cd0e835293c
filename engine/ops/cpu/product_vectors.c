#include "engine/ops/cpu/product.h"

#include "engine/ops/cpu/cpu_int.h"

#if defined(__AVX512BF16__)

#include <string.h>

#include "engine/ops/cpu/product_int.h"
#include "engine/ops/cpu/tile_int.h"

#define LANES DT_PRODUCT_LANES
#define STEP  DT_PRODUCT_STEP /* two panels */
#define BLOCK DT_PRODUCT_BLOCK
#define ROWS  8   /* rows of a at a time: with two panels of b, 16 registers of sums */
#define PAIRS 128 /* pairs of k in a chunk, whose panels of a block are 192 KiB for each operand */

static inline __mmask32 first(int64_t n)
{
    return n >= 32 ? ~(__mmask32)0 : n > 0 ? ((__mmask32)1 << n) - 1 : 0;
}

/* --- packing: 16 rows of a, or columns of b, become a panel: word (p,i) is pair p of k of row i */

/* Packs a row's values where they are neighbours; zeros after the last row and value. The rows of the next panel are
 * prefetched. */
static void pack_along(uint32_t *out, const dt_product_operand *x, int64_t i, int64_t k,
                       int64_t end)
{
    int64_t rows = dt_product_left(x->count, i, LANES);
    __m512i r[LANES];

    for (; k < end; k += 2 * LANES, out += LANES * LANES) {
        __mmask32 some = first(end - k);

        for (int64_t l = 0; l < LANES; l++)
            _mm_prefetch((const char *)(x->data + (i + LANES + l) * x->stride + k), _MM_HINT_T0);
        for (int64_t l = 0; l < LANES; l++)
            r[l] = l < rows ? _mm512_maskz_loadu_epi16(some, x->data + (i + l) * x->stride + k)
                            : _mm512_setzero_si512();
        dt_transpose_16(r);
        for (int64_t l = 0; l < LANES; l++)
            _mm512_store_si512(out + l * LANES, r[l]);
    }
}

/* Adds both values of each word, one after the other, as matmul.c adds the rows of dy. */
static inline __m512 add_pair(__m512 sum, __m512i words)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);

    sum = _mm512_add_ps(sum, (__m512)_mm512_slli_epi32(words, 16));
    return _mm512_add_ps(sum, (__m512)_mm512_and_si512(words, upper));
}

/* Packs two panels of rows that are neighbours, value after value of k; zeros after the last row and value. Adds each
 * row's values to `sums`, if they are wanted. */
static inline __attribute__((always_inline)) void pack_across(uint32_t *out, uint32_t *next,
                                                              const dt_product_operand *x,
                                                              int64_t i, int64_t k, int64_t end,
                                                              int64_t pairs, float *sums)
{
    const __m512i left = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i right = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const uint16_t *at = x->data + k * x->stride + i;
    __mmask32 some = first(x->count - i);
    __m512 s[2];

    if (sums != NULL) {
        s[0] = _mm512_load_ps(sums);
        s[1] = _mm512_load_ps(sums + LANES);
    }
    for (int64_t p = 0; p < pairs; p++, k += 2, at += 2 * x->stride) {
        __m512i even = _mm512_maskz_loadu_epi16(k < end ? some : 0, at);
        __m512i odd = _mm512_maskz_loadu_epi16(k + 1 < end ? some : 0, at + x->stride);
        __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
        __m512i words[2] = {_mm512_permutex2var_epi64(low, left, high),
                            _mm512_permutex2var_epi64(low, right, high)};

        _mm_prefetch((const char *)(at + STEP), _MM_HINT_T0);
        _mm_prefetch((const char *)(at + x->stride + STEP), _MM_HINT_T0);
        _mm512_store_si512(out + p * LANES, words[0]);
        _mm512_store_si512(next + p * LANES, words[1]);
        if (sums != NULL) {
            s[0] = add_pair(s[0], words[0]);
            s[1] = add_pair(s[1], words[1]);
        }
    }
    if (sums != NULL) {
        _mm512_store_ps(sums, s[0]);
        _mm512_store_ps(sums + LANES, s[1]);
    }
}

/* Packs `count` rows from row i on: whole steps. sums: of the rows, or NULL. */
static void pack(uint32_t *out, const dt_product_operand *x, int64_t i, int64_t count, int64_t k,
                 int64_t end, int64_t pairs, float *sums)
{
    for (int64_t l = 0; l < count; l += STEP, out += STEP * pairs) {
        uint32_t *next = out + LANES * pairs;

        if (x->along_k) {
            pack_along(out, x, i + l, k, end);
            pack_along(next, x, i + l + LANES, k, end);
        } else if (sums != NULL) {
            pack_across(out, next, x, i + l, k, end, pairs, sums + l);
        } else {
            pack_across(out, next, x, i + l, k, end, pairs, NULL);
        }
    }
}

/* --- prefetching what is read next while a chunk is multiplied */

/* Rows in memory, whose lines are prefetched one after the other. */
typedef struct ahead {
    const char *at;
    int64_t stride, bytes, rows, done; /* done: bytes of the first row */
} ahead;

static inline void prefetch(ahead *x, int count)
{
    for (; count > 0 && x->rows > 0; count--) {
        _mm_prefetch(x->at + x->done, _MM_HINT_T1);
        x->done += 64;
        if (x->done >= x->bytes) {
            x->done = 0;
            x->at += x->stride;
            x->rows--;
        }
    }
}

/* The part of an operand that is packed for rows i to i + count - 1 and the chunk from k on. */
static ahead part_of(const dt_product_operand *x, int64_t i, int64_t count, int64_t k,
                     int64_t depth)
{
    int64_t rows = dt_product_left(x->count, i, count);
    int64_t values = dt_product_left(depth, k, 2 * PAIRS);

    if (x->along_k)
        return (ahead){(const char *)(x->data + i * x->stride + k), 2 * x->stride, 2 * values,
                       values > 0 ? rows : 0, 0};
    return (ahead){(const char *)(x->data + k * x->stride + i), 2 * x->stride, 2 * rows,
                   rows > 0 ? values : 0, 0};
}

/* --- a block of c */

/* Adds the product of ROWS rows of a panel of a with two panels of b to the sums, pair after pair of k. */
static void multiply_rows(float *sums, const uint32_t *a, const uint32_t *b, int64_t pairs,
                          bool begins)
{
    const uint32_t *b1 = b + LANES * pairs;
    __m512 s[ROWS][2];

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        s[i][0] = begins ? _mm512_setzero_ps() : _mm512_load_ps(sums + i * STEP);
        s[i][1] = begins ? _mm512_setzero_ps() : _mm512_load_ps(sums + i * STEP + LANES);
    }
    for (int i = 0; i < 2 * ROWS; i++)
        _mm_prefetch((const char *)(sums + ROWS * STEP + i * LANES), _MM_HINT_T0);
#pragma GCC unroll 4
    for (int64_t p = 0; p < pairs; p++, a += LANES) {
        const __m512bh right = (__m512bh)_mm512_load_si512(b + p * LANES);
        const __m512bh right1 = (__m512bh)_mm512_load_si512(b1 + p * LANES);

#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            const __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[i]);

            s[i][0] = _mm512_dpbf16_ps(s[i][0], left, right);
            s[i][1] = _mm512_dpbf16_ps(s[i][1], left, right1);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        _mm512_store_ps(sums + i * STEP, s[i][0]);
        _mm512_store_ps(sums + i * STEP + LANES, s[i][1]);
    }
}

typedef struct whole {
    const dt_cpu_product *product;
    dt_product_operand left, right;
    void *c;
    const uint16_t *bias;
    float *row_sums;                     /* or NULL */
    dt_product_cuts by_rows, by_columns; /* blocks */
} whole;

/* A thread's panels of a chunk, and sums of a block: those of 32 columns, row after row, then the next ones. */
typedef struct workspace {
    uint32_t a[BLOCK * PAIRS], b[BLOCK * PAIRS];
    float sums[BLOCK * BLOCK], row_sums[BLOCK];
} workspace;

typedef struct block {
    int64_t i, j, rows, columns; /* of c */
    int64_t height, width;       /* the same in whole steps */
} block;

static block block_of(const whole *w, int64_t task)
{
    block x = {.i = task / w->by_columns.count * w->by_rows.length,
               .j = task % w->by_columns.count * w->by_columns.length};

    x.rows = dt_product_left(w->product->m, x.i, w->by_rows.length);
    x.columns = dt_product_left(w->product->n, x.j, w->by_columns.length);
    x.height = dt_cpu_round_up(x.rows, STEP);
    x.width = dt_cpu_round_up(x.columns, STEP);
    return x;
}

/* Where the sums of row i of a block are, for columns j to j + 15. */
static inline float *sums_at(workspace *m, const block *x, int64_t i, int64_t j)
{
    return m->sums + (j / STEP * x->height + i) * STEP + j % STEP;
}

static void multiply_chunk(const whole *w, workspace *m, const block *x, int64_t k, bool summed)
{
    const dt_cpu_product *p = w->product;
    int64_t end = dt_cpu_min(p->k, k + 2 * PAIRS), pairs = dt_cpu_round_up(end - k, STEP) / 2;
    ahead a = part_of(&w->left, x->i, x->rows, end, p->k);
    ahead b = part_of(&w->right, x->j, x->columns, end, p->k);

    pack(m->a, &w->left, x->i, x->height, k, end, pairs, summed ? m->row_sums : NULL);
    pack(m->b, &w->right, x->j, x->width, k, end, pairs, NULL);
    if (end == p->k && p->accumulate)
        a = (ahead){(const char *)((float *)w->c + x->i * p->n + x->j), 4 * p->n, 4 * x->columns,
                    x->rows, 0};
    for (int64_t j = 0; j < x->width; j += STEP)
        for (int64_t i = 0; i < x->height; i += ROWS) {
            prefetch(&a, end == p->k ? 16 : 6); /* so many that all are done at the end */
            prefetch(&b, 6);
            multiply_rows(sums_at(m, x, i, j), m->a + i / LANES * LANES * pairs + i % LANES,
                          m->b + j * pairs, pairs, k == 0);
        }
}

static void one_block(const whole *w, workspace *m, int64_t task)
{
    const dt_cpu_product *p = w->product;
    const block x = block_of(w, task);
    bool summed = w->row_sums != NULL && x.j == 0;

    memset(m->row_sums, 0, sizeof m->row_sums);
    for (int64_t k = 0; k < p->k; k += 2 * PAIRS)
        multiply_chunk(w, m, &x, k, summed);
    for (int64_t i = 0; i < x.rows; i++)
        for (int64_t j = 0; j < x.columns; j += LANES)
            dt_product_write(p, w->c, (x.i + i) * p->n + x.j + j,
                             _mm512_load_ps(sums_at(m, &x, i, j)),
                             w->bias != NULL ? w->bias + x.j + j : NULL,
                             (__mmask16)first(dt_cpu_min(LANES, x.columns - j)));
    for (int64_t i = 0; summed && i < x.rows; i++)
        w->row_sums[x.i + i] += m->row_sums[i];
    dt_progress_made();
}

dt_status dt_cpu_product_vectors(dt_device *device, const dt_cpu_product *product, void *c,
                                 const void *a, const void *b, const void *bias, float *row_sums,
                                 dt_error *err)
{
    const dt_cpu_product *p = product;
    int threads = dt_cpu_threads(device, p->m * p->n);
    whole w = {.product = p,
               .left = dt_product_a(p, a),
               .right = dt_product_b(p, b),
               .c = c,
               .bias = p->bias ? bias : NULL,
               .row_sums = row_sums};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(p->type == DT_BF16 && (p->c_type == DT_F32 || !p->accumulate));
    DT_ASSERT(row_sums == NULL || p->a_transposed);
    DT_TRY(dt_cpu_scratch_take(&scratch, device, sizeof(workspace) / sizeof(float), err));
    dt_product_cut(&w.by_rows, &w.by_columns, p->m, p->n, threads);
#pragma omp parallel num_threads(threads)
    {
        dt_cpu_share share = dt_cpu_share_mine(w.by_rows.count * w.by_columns.count, 1);

        for (int64_t task = share.begin; task < share.end; task++)
            one_block(&w, (workspace *)(void *)dt_cpu_scratch_mine(scratch), task);
    }
out:
    return st;
}

#else

dt_status dt_cpu_product_vectors(dt_device *device, const dt_cpu_product *product, void *c,
                                 const void *a, const void *b, const void *bias, float *row_sums,
                                 dt_error *err)
{
    (void)device, (void)product, (void)c, (void)a, (void)b, (void)bias, (void)row_sums;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "this build has no code for bf16 by AVX-512");
}

#endif
