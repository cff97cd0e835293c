/* tile_int: computes small matrix products within one thread, for attention and products of few rows.
 *
 * Formula    c(m,n) = a(m,k) b(k,n), or c += with `accumulate`
 * Words      an element of a or b is a float. With `pairs` it is two bf16 values, of k = 2p and 2p + 1,
 *            the first in the lower half; k then counts pairs. Their products are summed in fp32 by an
 *            instruction of AVX512_BF16, which treats subnormal numbers as zero. Pairs exist only in
 *            builds with this instruction (DT_TILE_PAIRS)
 * Layout     a: element (i,p) at a[i * a_row + p * a_col], so that a may be a transpose
 *            b: in panels of DT_TILE_COLS columns; element (p,j) at
 *               b[j / COLS * b_panel + p * COLS + j % COLS]. A panel is read sequentially for any k;
 *               columns past the last one are zero.
 *            c: row stride c_row, n rounded up to DT_TILE_COLS writable
 * Kernel     DT_TILE_ROWS x DT_TILE_COLS sums held in registers over the whole of k, in the order of
 *            p: results do not depend on how the caller splits m
 */
#ifndef DT_ENGINE_OPS_CPU_TILE_INT_H
#define DT_ENGINE_OPS_CPU_TILE_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* transpose_int: transposes 16 x 16 words of 32 bits in AVX-512 registers. */

#if defined(__AVX512F__)

#include <immintrin.h>

static inline void dt_transpose_16(__m512i r[16])
{
    __m512i t[16], u[16];

#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* quarter q of u[4 g + i] has column 4 q + i of rows 4 g to 4 g + 3 */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i even_top = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88);
        __m512i even_low = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88);
        __m512i odd_top = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xdd);
        __m512i odd_low = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xdd);

        r[i] = _mm512_shuffle_i32x4(even_top, even_low, 0x88);
        r[4 + i] = _mm512_shuffle_i32x4(odd_top, odd_low, 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(even_top, even_low, 0xdd);
        r[12 + i] = _mm512_shuffle_i32x4(odd_top, odd_low, 0xdd);
    }
}

#endif

#if defined(__AVX512BF16__)
#define DT_TILE_PAIRS true
#else
#define DT_TILE_PAIRS false
#endif

#if defined(__AVX512F__)
#define DT_TILE_LANES 16
#define DT_TILE_ROWS  8
#elif defined(__AVX2__)
#define DT_TILE_LANES 8
#define DT_TILE_ROWS  4
#else
#define DT_TILE_LANES 4
#define DT_TILE_ROWS  4
#endif
#define DT_TILE_COLS (2 * DT_TILE_LANES)

/* An unaligned vector of floats that may alias floats. */
typedef float dt_tile_vector __attribute__((vector_size(4 * DT_TILE_LANES), aligned(4), may_alias));

static inline __attribute__((always_inline)) dt_tile_vector dt_tile_multiply_add(
    dt_tile_vector sum, float left, dt_tile_vector right, const bool pairs)
{
#if defined(__AVX512BF16__)
    if (pairs)
        return (dt_tile_vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(left),
                                                (__m512bh)right);
#else
    (void)pairs;
#endif
    return sum + left * right;
}

static inline __attribute__((always_inline)) void dt_tile_kernel(float *c, int64_t c_row,
                                                                 const float *a, int64_t a_row,
                                                                 int64_t a_col, const float *b,
                                                                 int64_t k, bool accumulate,
                                                                 const bool pairs, const int rows)
{
    dt_tile_vector sum[DT_TILE_ROWS][2];

#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        const dt_tile_vector *old = (const dt_tile_vector *)(c + i * c_row);
        const dt_tile_vector none = {0};

        sum[i][0] = accumulate ? old[0] : none;
        sum[i][1] = accumulate ? old[1] : none;
    }
    for (int64_t p = 0; p < k; p++) {
        const dt_tile_vector *right = (const dt_tile_vector *)(b + p * DT_TILE_COLS);
        const dt_tile_vector right0 = right[0], right1 = right[1];

#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const float left = a[i * a_row + p * a_col];

            sum[i][0] = dt_tile_multiply_add(sum[i][0], left, right0, pairs);
            sum[i][1] = dt_tile_multiply_add(sum[i][1], left, right1, pairs);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        dt_tile_vector *out = (dt_tile_vector *)(c + i * c_row);

        out[0] = sum[i][0];
        out[1] = sum[i][1];
    }
}

static inline __attribute__((always_inline)) void dt_tile_rows(
    float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col, const float *b,
    int64_t b_panel, int64_t m, int64_t n, int64_t k, bool accumulate, const bool pairs)
{
    for (int64_t j = 0; j < n; j += DT_TILE_COLS, b += b_panel) {
        int64_t i = 0;

        for (; i + DT_TILE_ROWS <= m; i += DT_TILE_ROWS)
            dt_tile_kernel(c + i * c_row + j, c_row, a + i * a_row, a_row, a_col, b, k, accumulate,
                           pairs, DT_TILE_ROWS);
        for (; i < m; i++)
            dt_tile_kernel(c + i * c_row + j, c_row, a + i * a_row, a_row, a_col, b, k, accumulate,
                           pairs, 1);
    }
}

static inline void dt_tile_product(float *c, int64_t c_row, const float *a, int64_t a_row,
                                   int64_t a_col, const float *b, int64_t b_panel, int64_t m,
                                   int64_t n, int64_t k, bool accumulate, bool pairs)
{
    if (DT_TILE_PAIRS && pairs)
        dt_tile_rows(c, c_row, a, a_row, a_col, b, b_panel, m, n, k, accumulate, true);
    else
        dt_tile_rows(c, c_row, a, a_row, a_col, b, b_panel, m, n, k, accumulate, false);
}

/* Packs rows x cols floats, with row stride row_stride, into panels of `depth` rows. All depths are
 * in words. */
static inline void dt_tile_pack(float *out, int64_t depth, const float *in, int64_t row_stride,
                                int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += DT_TILE_COLS, out += depth * DT_TILE_COLS) {
        int64_t width = cols - j < DT_TILE_COLS ? cols - j : DT_TILE_COLS;

        for (int64_t p = 0; p < rows; p++) {
            float *to = out + p * DT_TILE_COLS;

            memcpy(to, in + p * row_stride + j, (size_t)width * sizeof *to);
            if (width < DT_TILE_COLS)
                memset(to + width, 0, (size_t)(DT_TILE_COLS - width) * sizeof *to);
        }
    }
}

/* Transposes 16 rows of `in`, 16 x 16 at a time; returns how many rows of `out` are done. */
static inline int64_t dt_tile_transpose_squares(float *out, int64_t out_row, const float *in,
                                                int64_t in_row, int64_t rows)
{
    int64_t p = 0;

#if defined(__AVX512F__)
    for (; p + 16 <= rows; p += 16) {
        __m512i square[16];

        for (int i = 0; i < 16; i++)
            square[i] = _mm512_loadu_si512(in + i * in_row + p);
        dt_transpose_16(square);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(out + (p + i) * out_row, square[i]);
    }
#else
    (void)out, (void)out_row, (void)in, (void)in_row, (void)rows;
#endif
    return p;
}

/* Transposes `in` (cols, rows) to `out` (rows, cols). */
static inline void dt_tile_transpose(float *out, int64_t out_row, const float *in, int64_t in_row,
                                     int64_t rows, int64_t cols)
{
    for (int64_t l = 0; l < cols; l += 16, in += 16 * in_row) {
        int64_t some = cols - l < 16 ? cols - l : 16, done = 0;

        if (some == 16)
            done = dt_tile_transpose_squares(out + l, out_row, in, in_row, rows);
        for (int64_t i = 0; i < some; i++)
            for (int64_t p = done; p < rows; p++)
                out[p * out_row + l + i] = in[i * in_row + p];
    }
}

/* Like dt_tile_pack, transposed: `in` is (cols, rows), and rows of `in` become columns of the
 * panels. */
static inline void dt_tile_pack_transposed(float *out, int64_t depth, const float *in,
                                           int64_t row_stride, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += DT_TILE_COLS, out += depth * DT_TILE_COLS) {
        int64_t width = cols - j < DT_TILE_COLS ? cols - j : DT_TILE_COLS;

        if (width < DT_TILE_COLS)
            memset(out, 0, (size_t)(rows * DT_TILE_COLS) * sizeof *out);
        dt_tile_transpose(out, DT_TILE_COLS, in + j * row_stride, row_stride, rows, width);
    }
}

/* Like dt_tile_pack, for rows of bf16, each padded to whole words: two neighbouring rows become one
 * row of pairs. If the number of rows is odd, the last row is paired with zeros. */
static inline void dt_tile_pack_pairs(float *out, int64_t depth, const float *in,
                                      int64_t row_stride, int64_t rows, int64_t cols)
{
#if defined(__AVX512BF16__)
    for (int64_t j = 0; j < cols; j += DT_TILE_COLS, out += depth * DT_TILE_COLS) {
        __mmask32 some = cols - j < DT_TILE_COLS ? (1u << (cols - j)) - 1 : ~0u;

        for (int64_t p = 0; p < rows; p += 2) {
            const float *even = in + p * row_stride + j / 2, *odd = even + row_stride;
            __m512i low = _mm512_maskz_loadu_epi16(some, even);
            __m512i high = _mm512_maskz_loadu_epi16(p + 1 < rows ? some : 0, odd);
            __m512i left = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(low));
            __m512i right = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(low, 1));

            left = _mm512_or_si512(
                left, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(high)), 16));
            right = _mm512_or_si512(
                right,
                _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(high, 1)), 16));
            _mm512_storeu_si512(out + p / 2 * DT_TILE_COLS, left);
            _mm512_storeu_si512(out + p / 2 * DT_TILE_COLS + DT_TILE_LANES, right);
        }
    }
#else
    (void)out, (void)depth, (void)in, (void)row_stride, (void)rows, (void)cols;
#endif
}

/* Converts a row of `width` floats, which are whole panels, to half as many words of pairs, in
 * place. */
static inline void dt_tile_pair_row(float *row, int64_t width)
{
#if defined(__AVX512BF16__)
    for (int64_t j = 0; j < width; j += 2 * DT_TILE_LANES) {
        __m512 left = _mm512_loadu_ps(row + j), right = _mm512_loadu_ps(row + j + DT_TILE_LANES);

        _mm512_storeu_si512(row + j / 2, (__m512i)_mm512_cvtne2ps_pbh(right, left));
    }
#else
    (void)row, (void)width;
#endif
}

/* Combines two rows into one row of pairs, one element of each row per pair; out may be either
 * row. */
static inline void dt_tile_pair_rows(float *out, const float *even, const float *odd, int64_t width)
{
#if defined(__AVX512BF16__)
    const __m512i halves = _mm512_set1_epi32(16 << 16);
    const __m512i interleave =
        _mm512_add_epi16(halves, _mm512_mullo_epi32(_mm512_set1_epi32(0x10001),
                                                    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                                                      10, 11, 12, 13, 14, 15)));

    for (int64_t j = 0; j < width; j += DT_TILE_LANES) {
        __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd + j), _mm512_loadu_ps(even + j));

        _mm512_storeu_si512(out + j, _mm512_permutexvar_epi16(interleave, (__m512i)both));
    }
#else
    (void)out, (void)even, (void)odd, (void)width;
#endif
}

#endif
