/* transpose_int: transposes 16 x 16 words of 32 bits in AVX-512 registers. */
#ifndef DT_ENGINE_OPS_CPU_TRANSPOSE_INT_H
#define DT_ENGINE_OPS_CPU_TRANSPOSE_INT_H

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
#endif
