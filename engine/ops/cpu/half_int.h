/* half_int: converts fp32 to and from the two 16-bit formats, single numbers and rows.
 *
 * BF16      the upper half of an fp32
 * F16       IEEE 754 binary16, including subnormal numbers; numbers that are too large become
 *           infinity. The builds for AVX2 and AVX-512 use the processor's instructions, the plain
 *           build uses C code with the same results.
 * Rounding  to nearest, ties to even; a NaN stays a NaN and becomes quiet
 */
#ifndef DT_ENGINE_OPS_CPU_HALF_INT_H
#define DT_ENGINE_OPS_CPU_HALF_INT_H

#include <stdint.h>
#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline uint32_t dt_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dt_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- bf16 ------------------------------------------------------------------------------------ */

static inline float dt_bf16_widen(uint16_t half)
{
    return dt_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t dt_bf16_narrow(float value)
{
    uint32_t bits = dt_float_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

static inline void dt_bf16_widen_row(float *out, const uint16_t *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_bf16_widen(in[i]);
}

static inline void dt_bf16_narrow_row(uint16_t *out, const float *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_bf16_narrow(in[i]);
}

/* --- f16 ------------------------------------------------------------------------------------- */

/* Changes the exponent bias from 15 to 127. For a subnormal number, which has no implicit leading
 * one, the conversion first adds one and then subtracts its value. */
static inline float dt_f16_widen(uint16_t half)
{
    const uint32_t rebias = (uint32_t)(127 - 15) << 23, lowest = (uint32_t)(127 - 14) << 23;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, size = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t normal = size + rebias;
    uint32_t subnormal = dt_float_bits(dt_float_of_bits(size + lowest) - dt_float_of_bits(lowest));
    uint32_t special = size + 2u * rebias; /* inf and NaN: set all exponent bits */

    special |= size > 0x0f800000u ? 0x00400000u : 0u;
    size = size >= 0x0f800000u ? special : size < 0x00800000u ? subnormal : normal;
    return dt_float_of_bits(sign | size);
}

/* A normal result is rounded by integer arithmetic on the bits. For a subnormal result, the code
 * adds a constant whose last mantissa bit has the value of the result's last bit: the addition
 * rounds, and the low bits are the result. */
static inline uint16_t dt_f16_narrow(float value)
{
    const uint32_t rebias = (uint32_t)(127 - 15) << 23, lowest = (uint32_t)(127 - 14) << 23;
    const uint32_t shifter = (uint32_t)(127 - 14 + 23 - 10) << 23;
    uint32_t bits = dt_float_bits(value), size = bits & 0x7fffffffu;
    uint32_t normal = (size - rebias + 0xfffu + ((size >> 13) & 1u)) >> 13;
    uint32_t subnormal =
        dt_float_bits(dt_float_of_bits(size) + dt_float_of_bits(shifter)) - shifter;
    uint32_t nan = 0x7e00u | ((size >> 13) & 0x3ffu);
    uint32_t half = size < lowest ? subnormal : normal;

    half = size > 0x7f800000u ? nan : half > 0x7c00u ? 0x7c00u : half;
    return (uint16_t)((bits >> 16 & 0x8000u) | half);
}

#if defined(__F16C__)

#if defined(__AVX512F__)
#define DT_F16_LANES 16
#else
#define DT_F16_LANES 8
#endif

static inline void dt_f16_widen_row(float *out, const uint16_t *in, int64_t n)
{
    int64_t i = 0;

    for (; i + DT_F16_LANES <= n; i += DT_F16_LANES) {
#if defined(__AVX512F__)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + i))));
#else
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
#endif
    }
    for (; i < n; i++)
        out[i] = _cvtsh_ss(in[i]);
}

static inline void dt_f16_narrow_row(uint16_t *out, const float *in, int64_t n)
{
    int64_t i = 0;

    for (; i + DT_F16_LANES <= n; i += DT_F16_LANES) {
#if defined(__AVX512F__)
        _mm256_storeu_si256((void *)(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
#else
        _mm_storeu_si128((void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
    }
    for (; i < n; i++)
        out[i] = _cvtss_sh(in[i], 0);
}

#else

static inline void dt_f16_widen_row(float *out, const uint16_t *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_f16_widen(in[i]);
}

static inline void dt_f16_narrow_row(uint16_t *out, const float *in, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = dt_f16_narrow(in[i]);
}

#endif
#endif
