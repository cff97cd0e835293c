/* tile_int: small matrix products inside one thread, for attention; oneDNN does the large ones.
 *
 * Formula    c(m,n) = a(m,k) b(k,n), or c += where `accumulate`
 * Layout     a: element (i,p) at a[i * a_row + p * a_col], so that a may be a transpose
 *            b: in panels of DT_TILE_COLS columns; element (p,j) at
 *               b[j / COLS * b_panel + p * COLS + j % COLS]. A panel is read straight through,
 *               whatever k; columns past the last one are zero.
 *            c: rows c_row apart, n rounded up to DT_TILE_COLS writable
 * Kernel     DT_TILE_ROWS x DT_TILE_COLS sums held in registers over the whole of k, in order of
 *            p: results do not depend on how the caller cuts m
 */
#ifndef DT_ENGINE_OPS_CPU_TILE_INT_H
#define DT_ENGINE_OPS_CPU_TILE_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/ops/cpu/transpose_int.h"

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

static inline __attribute__((always_inline)) void dt_tile_kernel(float *c, int64_t c_row,
                                                                 const float *a, int64_t a_row,
                                                                 int64_t a_col, const float *b,
                                                                 int64_t k, bool accumulate,
                                                                 const int rows)
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

            sum[i][0] += left * right0;
            sum[i][1] += left * right1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        dt_tile_vector *out = (dt_tile_vector *)(c + i * c_row);

        out[0] = sum[i][0];
        out[1] = sum[i][1];
    }
}

static inline void dt_tile_product(float *c, int64_t c_row, const float *a, int64_t a_row,
                                   int64_t a_col, const float *b, int64_t b_panel, int64_t m,
                                   int64_t n, int64_t k, bool accumulate)
{
    for (int64_t j = 0; j < n; j += DT_TILE_COLS, b += b_panel) {
        int64_t i = 0;

        for (; i + DT_TILE_ROWS <= m; i += DT_TILE_ROWS)
            dt_tile_kernel(c + i * c_row + j, c_row, a + i * a_row, a_row, a_col, b, k, accumulate,
                           DT_TILE_ROWS);
        for (; i < m; i++)
            dt_tile_kernel(c + i * c_row + j, c_row, a + i * a_row, a_row, a_col, b, k, accumulate,
                           1);
    }
}

/* rows x cols floats (rows row_stride apart) into panels of `depth` rows. */
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

/* Columns l to l + 16 of a panel, from as many rows of `in`, as far down as whole squares go:
 * returns how many rows of the result are done. */
static inline int64_t dt_tile_pack_squares(float *out, const float *in, int64_t row_stride,
                                           int64_t rows)
{
    int64_t p = 0;

#if defined(__AVX512F__)
    for (; p + 16 <= rows; p += 16) {
        __m512i square[16];

        for (int i = 0; i < 16; i++)
            square[i] = _mm512_loadu_si512(in + i * row_stride + p);
        dt_transpose_16(square);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(out + (p + i) * DT_TILE_COLS, square[i]);
    }
#else
    (void)out, (void)in, (void)row_stride, (void)rows;
#endif
    return p;
}

/* The same of the transpose: `in` is (cols, rows), columns of the result are rows of `in`. */
static inline void dt_tile_pack_transposed(float *out, int64_t depth, const float *in,
                                           int64_t row_stride, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += DT_TILE_COLS, out += depth * DT_TILE_COLS) {
        int64_t width = cols - j < DT_TILE_COLS ? cols - j : DT_TILE_COLS;

        if (width < DT_TILE_COLS)
            memset(out, 0, (size_t)(rows * DT_TILE_COLS) * sizeof *out);
        for (int64_t l = 0; l < width; l += 16) {
            const float *from = in + (j + l) * row_stride;
            int64_t some = width - l < 16 ? width - l : 16, done = 0;

            if (some == 16)
                done = dt_tile_pack_squares(out + l, from, row_stride, rows);
            for (int64_t i = 0; i < some; i++)
                for (int64_t p = done; p < rows; p++)
                    out[p * DT_TILE_COLS + l + i] = from[i * row_stride + p];
        }
    }
}

#endif
