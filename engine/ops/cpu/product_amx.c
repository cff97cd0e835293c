#include "engine/ops/cpu/product.h"

#include "engine/ops/cpu/cpu_int.h"

#if defined(__AMX_BF16__)

#include "engine/ops/cpu/product_int.h"
#include "engine/ops/cpu/tile_int.h"

#define SIDE  DT_CPU_AMX_SIDE /* rows and columns of a tile of c */
#define DEPTH 32              /* values of k in a tile of a or b */
#define TILE  (SIDE * DEPTH)  /* bf16 numbers in a tile of a or b: 1 KiB */
#define SUMS  (SIDE * SIDE)   /* floats in a tile of c: 1 KiB */
#define PAIR  (2 * SIDE)      /* rows and columns of a step */
#define BLOCK DT_PRODUCT_BLOCK
#define CHUNK 256 /* values of k of a step: the chunks of a block, and the next ones, are 768 KiB */
#define SLICE 4096 /* most rows, columns and values of k that are packed at once: 32 MiB each */

/* --- packing */

/* Rows i to i + 15, values k to k + 31 of each; zeros after the last row and value. */
static inline void read_along(__m512i r[SIDE], const dt_product_operand *x, int64_t i, int64_t k,
                              int64_t depth)
{
    int64_t rows = dt_product_left(x->count, i, SIDE), values = dt_product_left(depth, k, DEPTH);
    __mmask32 some = values == DEPTH ? ~(__mmask32)0 : ((__mmask32)1 << values) - 1;

    for (int64_t l = 0; l < SIDE; l++)
        r[l] = l < rows ? _mm512_maskz_loadu_epi16(some, x->data + (i + l) * x->stride + k)
                        : _mm512_setzero_si512();
}

/* 16 values from row k on, or as many as `some` tells; zeros after the last row. */
static inline __m256i row_at(const dt_product_operand *x, int64_t i, int64_t k, int64_t end,
                             __mmask16 some)
{
    return k < end ? _mm256_maskz_loadu_epi16(some, x->data + k * x->stride + i)
                   : _mm256_setzero_si256();
}

/* Pairs of values k + 2 p and k + 2 p + 1, p < 16, for i to i + 15. */
static inline void read_across(__m512i r[SIDE], const dt_product_operand *x, int64_t i, int64_t k,
                               int64_t end)
{
    const __m512i quarters = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    __mmask16 some = (__mmask16)((1u << dt_product_left(x->count, i, SIDE)) - 1);

    for (int64_t p = 0; p < SIDE; p++) {
        __m256i even = row_at(x, i, k + 2 * p, end, some);
        __m256i odd = row_at(x, i, k + 2 * p + 1, end, some);
        __m512i low = _mm512_castsi256_si512(_mm256_unpacklo_epi16(even, odd));
        __m512i high = _mm512_castsi256_si512(_mm256_unpackhi_epi16(even, odd));

        r[p] = _mm512_permutex2var_epi64(low, quarters, high);
    }
}

static inline void pack_tile(uint16_t *out, const dt_product_operand *x, int64_t i, int64_t k,
                             int64_t depth, bool transposed)
{
    __m512i r[SIDE];

    if (x->along_k)
        read_along(r, x, i, k, depth);
    else
        read_across(r, x, i, k, depth);
    if (transposed)
        dt_transpose_16(r);
    for (int64_t l = 0; l < SIDE; l++)
        _mm512_store_si512(out + l * DEPTH, r[l]);
}

/* A packed operand of a slice: chunk after chunk of k, in each of them tile row after tile row. */
typedef struct packed {
    uint16_t *data;
    int64_t tiles; /* of 16 rows of a, or columns of b; even */
    int64_t deep;  /* tiles of k */
} packed;

/* How many tiles of k the chunk has that begins with tile d. */
static inline int64_t deep_at(const packed *x, int64_t d)
{
    return dt_product_left(x->deep, d, CHUNK / DEPTH);
}

/* Tile row i in the chunk that begins with tile d. */
static inline uint16_t *chunk_of(const packed *x, int64_t i, int64_t d)
{
    return x->data + (d * x->tiles + i * deep_at(x, d)) * TILE;
}

/* Packs some tile rows. Row 0 is row `from` of the operand; k is its first value, `end` is behind its last. A tile
 * of a has a row in 64 bytes; one of b has a pair of k. */
static void pack(const packed *out, dt_cpu_share rows, const dt_product_operand *x, int64_t from,
                 int64_t k, int64_t end, bool is_a)
{
    bool transposed = x->along_k != is_a;

    for (int64_t c = 0; c < out->deep; c += CHUNK / DEPTH) {
        int64_t deep = deep_at(out, c), count = rows.end - rows.begin;

        for (int64_t t = 0; t < count * deep; t++) { /* in the order of memory */
            int64_t i = rows.begin + (x->along_k ? t / deep : t % count);
            int64_t d = x->along_k ? t % deep : t / count;

            pack_tile(chunk_of(out, i, c) + d * TILE, x, from + i * SIDE, k + (c + d) * DEPTH, end,
                      transposed);
        }
    }
}

/* --- a block of c */

/* Positions in the next chunk of a block. A step prefetches 128 bytes of each operand for each tile of k. */
typedef struct ahead {
    const char *a, *b;
} ahead;

static inline void prefetch(ahead *next)
{
    _mm_prefetch(next->a, _MM_HINT_T1);
    _mm_prefetch(next->a + 64, _MM_HINT_T1);
    _mm_prefetch(next->b, _MM_HINT_T1);
    _mm_prefetch(next->b + 64, _MM_HINT_T1);
    next->a += 128;
    next->b += 128;
}

/* Prefetches a part of two rows of tiles of sums: 256 bytes of each for each tile of k. */
static inline void prefetch_sums(const float *top, const float *low, int64_t d)
{
    for (int l = 0; l < 4; l++) {
        _mm_prefetch((const char *)top + 256 * d + 64 * l, _MM_HINT_T0);
        _mm_prefetch((const char *)low + 256 * d + 64 * l, _MM_HINT_T0);
    }
}

/* Adds the product of two tile rows of a and two tile columns of b to four tiles of sums. */
static inline void step(float *top, float *low, const uint16_t *a, const uint16_t *b, int64_t deep,
                        bool begins, ahead *next)
{
    const uint16_t *a1 = a + deep * TILE, *b1 = b + deep * TILE;

    if (begins) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, top, 64);
        _tile_loadd(1, top + SUMS, 64);
        _tile_loadd(2, low, 64);
        _tile_loadd(3, low + SUMS, 64);
    }
    for (int64_t d = 0; d < deep; d++) {
        _tile_loadd(4, a + d * TILE, 64);
        _tile_loadd(6, b + d * TILE, 64);
        _tile_loadd(7, b1 + d * TILE, 64);
        _tile_loadd(5, a1 + d * TILE, 64);
        prefetch(next);
        if (!begins)
            prefetch_sums(top + 2 * SUMS, low + 2 * SUMS, d);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, top, 64);
    _tile_stored(1, top + SUMS, 64);
    _tile_stored(2, low, 64);
    _tile_stored(3, low + SUMS, 64);
}

typedef struct block {
    int64_t i, j, rows, columns;     /* of c */
    int64_t tile_rows, tile_columns; /* even: tiles after the last row or column are zero */
    float *sums;                     /* tile (i, j) at sums + (i * tile_columns + j) * SUMS */
} block;

static void multiply(const block *x, const packed *a, const packed *b, int64_t i0, int64_t j0,
                     bool begins)
{
    for (int64_t d = 0; d < a->deep; d += CHUNK / DEPTH) {
        int64_t deep = deep_at(a, d), after = d + CHUNK / DEPTH < a->deep ? d + CHUNK / DEPTH : 0;
        const uint16_t *left = chunk_of(a, i0, d), *right = chunk_of(b, j0, d);
        ahead next = {(const char *)chunk_of(a, i0, after), (const char *)chunk_of(b, j0, after)};

        for (int64_t i = 0; i < x->tile_rows; i += 2)
            for (int64_t j = 0; j < x->tile_columns; j += 2) {
                float *top = x->sums + (i * x->tile_columns + j) * SUMS;

                step(top, top + x->tile_columns * SUMS, left + i * deep * TILE,
                     right + j * deep * TILE, deep, begins && d == 0, &next);
            }
    }
}

static void write_out(const block *x, const dt_cpu_product *product, void *c, const uint16_t *bias)
{
    for (int64_t i = 0; i < x->rows; i++) {
        const float *row = x->sums + i / SIDE * x->tile_columns * SUMS + i % SIDE * SIDE;

        for (int64_t j = 0; j < x->columns; j += SIDE)
            dt_product_write(product, c, (x->i + i) * product->n + x->j + j,
                             _mm512_load_ps(row + j / SIDE * SUMS),
                             bias != NULL ? bias + x->j + j : NULL,
                             (__mmask16)((1u << dt_product_left(x->columns, j, SIDE)) - 1));
    }
}

/* --- the whole */

/* A part of the product: rows i, columns j, values k, and as many of each. */
typedef struct slice {
    const dt_cpu_product *product;
    dt_product_operand left, right;
    void *c;
    const uint16_t *bias;
    int64_t i, j, k, rows, columns, depth;
    dt_product_cuts by_rows, by_columns; /* blocks */
    packed a, b;
    float *sums; /* of each block, or of each thread if k is in one slice */
} slice;

static void pack_both(const slice *s)
{
    int64_t end = s->k + s->depth;

    pack(&s->a, dt_cpu_share_mine(s->a.tiles, 1), &s->left, s->i, s->k, end, true);
    pack(&s->b, dt_cpu_share_mine(s->b.tiles, 1), &s->right, s->j, s->k, end, false);
}

static void one_block(const slice *s, int64_t task)
{
    int64_t i = task / s->by_columns.count * s->by_rows.length;
    int64_t j = task % s->by_columns.count * s->by_columns.length;
    int64_t begin = s->depth == s->product->k ? omp_get_thread_num() * BLOCK * BLOCK
                                              : task * s->by_rows.length * s->by_columns.length;
    block x = {.i = s->i + i,
               .j = s->j + j,
               .rows = dt_product_left(s->rows, i, s->by_rows.length),
               .columns = dt_product_left(s->columns, j, s->by_columns.length),
               .sums = s->sums + begin};

    x.tile_rows = dt_cpu_round_up(x.rows, PAIR) / SIDE;
    x.tile_columns = dt_cpu_round_up(x.columns, PAIR) / SIDE;
    multiply(&x, &s->a, &s->b, i / SIDE, j / SIDE, s->k == 0);
    if (s->k + s->depth == s->product->k)
        write_out(&x, s->product, s->c, s->bias);
    dt_progress_made();
}

static void run_slice(const slice *s, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        dt_cpu_share share = dt_cpu_share_mine(s->by_rows.count * s->by_columns.count, 1);

        dt_cpu_amx_open();
        pack_both(s);
#pragma omp barrier
        for (int64_t task = share.begin; task < share.end; task++)
            one_block(s, task);
        dt_cpu_amx_close();
    }
}

/* Most values that a side of a slice has, with the zeros that fill its last step. */
static int64_t padded(int64_t side)
{
    return dt_cpu_round_up(dt_cpu_min(side, SLICE), PAIR);
}

/* At least the length of all blocks of a side, each of which has at least 3 steps where there are several. A
 * multiple of PAIR, so that what follows the sums in memory begins with a cache line. */
static int64_t all_blocks(int64_t side)
{
    return dt_cpu_round_up(padded(side) + padded(side) / 3, PAIR) + PAIR;
}

static void run_slices(slice *s, int threads)
{
    const dt_cpu_product *p = s->product;

    for (s->j = 0; s->j < p->n; s->j += SLICE)
        for (s->i = 0; s->i < p->m; s->i += SLICE) {
            s->rows = dt_product_left(p->m, s->i, SLICE);
            s->columns = dt_product_left(p->n, s->j, SLICE);
            s->a.tiles = padded(s->rows) / SIDE;
            s->b.tiles = padded(s->columns) / SIDE;
            dt_product_cut(&s->by_rows, &s->by_columns, s->rows, s->columns, threads);
            for (s->k = 0; s->k < p->k; s->k += SLICE) {
                s->depth = dt_product_left(p->k, s->k, SLICE);
                s->a.deep = s->b.deep = (s->depth + DEPTH - 1) / DEPTH;
                run_slice(s, threads);
            }
        }
}

dt_status dt_cpu_product_amx(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, dt_error *err)
{
    const dt_cpu_product *p = product;
    int64_t rows = padded(p->m), columns = padded(p->n), depth = padded(p->k);
    int threads = dt_cpu_threads(device, p->m * p->n);
    int64_t sums =
        p->k > SLICE ? all_blocks(p->m) * all_blocks(p->n) : (int64_t)threads * BLOCK * BLOCK;
    slice s = {.product = p,
               .left = dt_product_a(p, a),
               .right = dt_product_b(p, b),
               .c = c,
               .bias = p->bias ? bias : NULL};
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_ASSERT(p->type == DT_BF16 && (p->c_type == DT_F32 || !p->accumulate));
    /* one allocation for all threads: their blocks are contiguous */
    DT_TRY(dt_cpu_scratch_take(&scratch, device,
                               (sums + (rows + columns) * depth / 2) / device->threads + 1, err));
    s.sums = scratch.base;
    s.a.data = (uint16_t *)(scratch.base + sums);
    s.b.data = s.a.data + rows * depth;
    run_slices(&s, threads);
out:
    return st;
}

/* --- few rows */

/* 16 rows of w, as tiles of a: as they are stored, or packed. */
typedef struct tiles {
    const uint16_t *first;
    int64_t advance, stride; /* from a tile to the next one, from a row to the next one */
} tiles;

#define FEW_STEP(tile, d)                                           \
    do {                                                            \
        _tile_loadd(4, w->first + (d)*w->advance, 2 * w->stride);   \
        _tile_loadd(5, x + (d)*TILE, 64);                           \
        _tile_dpbf16ps(tile, 4, 5);                                 \
        for (int64_t l = 0; l < SIDE; l++)                          \
            _mm_prefetch(next + (d)*TILE + l * DEPTH, _MM_HINT_T0); \
    } while (0)

/* Multiplies 16 rows of w with all rows of x: element (o, i) of the sums is row o of w times row i of x. Sum q of
 * four takes every fourth tile of k from q on. next: the rows of w that are prefetched. */
static inline void few_sums(float sums[4][SUMS], const tiles *w, const uint16_t *x, int64_t deep,
                            const uint16_t *next)
{
    int64_t d = 0;

    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (; d + 4 <= deep; d += 4) {
        FEW_STEP(0, d);
        FEW_STEP(1, d + 1);
        FEW_STEP(2, d + 2);
        FEW_STEP(3, d + 3);
    }
    if (d < deep)
        FEW_STEP(0, d);
    if (d + 1 < deep)
        FEW_STEP(1, d + 1);
    if (d + 2 < deep)
        FEW_STEP(2, d + 2);
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
}

typedef struct few {
    const dt_cpu_product *product;
    dt_product_operand w;
    const uint16_t *x, *bias; /* x: packed */
    void *y;
} few;

/* Columns j to j + 15 of y, or as many as there are. Rows of w are packed if a tile would end behind them. */
static void few_columns(const few *f, int64_t j, uint16_t *scratch)
{
    const dt_cpu_product *p = f->product;
    int64_t columns = dt_product_left(p->n, j, SIDE), deep = (p->k + DEPTH - 1) / DEPTH;
    float sums[4][SUMS] __attribute__((aligned(64)));
    tiles w = {f->w.data + j * p->k, DEPTH, p->k};
    __m512i row[SIDE];

    if (columns < SIDE || p->k % DEPTH != 0) {
        for (int64_t d = 0; d < deep; d++)
            pack_tile(scratch + d * TILE, &f->w, j, d * DEPTH, p->k, false);
        w = (tiles){scratch, TILE, DEPTH};
    }
    few_sums(sums, &w, f->x, deep, f->w.data + (j + SIDE) * p->k);
    for (int64_t o = 0; o < SIDE; o++) {
        const float *at = sums[0] + o * SIDE;

        row[o] = (__m512i)_mm512_add_ps(
            _mm512_add_ps(_mm512_load_ps(at), _mm512_load_ps(at + SUMS)),
            _mm512_add_ps(_mm512_load_ps(at + 2 * SUMS), _mm512_load_ps(at + 3 * SUMS)));
    }
    dt_transpose_16(row);
    for (int64_t i = 0; i < p->m; i++)
        dt_product_write(p, f->y, i * p->n + j, (__m512)row[i],
                         f->bias != NULL ? f->bias + j : NULL, (__mmask16)((1u << columns) - 1));
}

dt_status dt_cpu_product_amx_few(dt_device *device, const dt_cpu_product *product, void *y,
                                 const void *x, const void *w, const void *bias, dt_error *err)
{
    const dt_cpu_product *p = product;
    const dt_product_operand rows = {x, p->m, p->k, true};
    int64_t deep = (p->k + DEPTH - 1) / DEPTH, words = deep * TILE / 2;
    few f = {.product = p, .w = {w, p->n, p->k, true}, .bias = p->bias ? bias : NULL, .y = y};
    dt_cpu_scratch scratch;
    uint16_t *packed_x;
    dt_status st = DT_OK;

    DT_ASSERT(p->type == DT_BF16 && p->m <= SIDE && p->b_transposed && !p->accumulate);
    /* one part per thread, then one for x */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, words + words / device->threads + SIDE, err));
    packed_x = (uint16_t *)(scratch.base + words * device->threads);
    for (int64_t d = 0; d < deep; d++)
        pack_tile(packed_x + d * TILE, &rows, 0, d * DEPTH, p->k, true);
    f.x = packed_x;
#pragma omp parallel num_threads(dt_cpu_threads(device, p->n * p->k))
    {
        dt_cpu_share share = dt_cpu_share_mine(p->n, SIDE);

        dt_cpu_amx_open();
        for (int64_t j = share.begin; j < share.end; j += SIDE)
            few_columns(&f, j, (uint16_t *)(scratch.base + words * omp_get_thread_num()));
        dt_cpu_amx_close();
    }
out:
    return st;
}

#else

dt_status dt_cpu_product_amx(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, dt_error *err)
{
    (void)device, (void)product, (void)c, (void)a, (void)b, (void)bias;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "this build has no code for AMX");
}

dt_status dt_cpu_product_amx_few(dt_device *device, const dt_cpu_product *product, void *y,
                                 const void *x, const void *w, const void *bias, dt_error *err)
{
    return dt_cpu_product_amx(device, product, y, x, w, bias, err);
}

#endif
