/* math_int: defines mathematical functions that the compiler can vectorise, unlike those of libm.
 *
 * dt_exp      relative error < 2e-7 on [-87, 87]; 0 below -87.3, exp(87) above 87; NaN gives NaN
 * dt_sigmoid  1 / (1 + exp(-x)), relative error < 4e-7
 * dt_bell     exp(-x^2/2), relative error < 2e-7 + 6e-8 x^2; 0 beyond 12.8
 * dt_normal   the cumulative normal distribution (1 + erf(x/sqrt(2))) / 2, computed from x and
 *             dt_bell(x); relative error < 5e-7 + 6e-8 x^2 on both sides, because the smaller tail is
 *             computed directly and not as a difference from 1
 *
 * exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2)/2; ln 2 in two parts (Cody and
 * Waite), exp(r) by its Taylor series up to r^7, with a remainder below 6e-9.
 * dt_exp is clamped at 87, where 1/exp(x) is still a normal number: denormal numbers are a hundred
 * times slower on many processors. dt_bell ends at 12.8 for the same reason.
 * The ratio of the tail to the bell (Mills' ratio / sqrt(2 pi)) falls as 1/z; it is a polynomial of
 * degree 9 in q = 1/(1 + 0.35 z), fitted on [0, 13] to a relative error of 3e-8, 2.8e-7 in fp32.
 */
#ifndef DT_ENGINE_OPS_CPU_MATH_INT_H
#define DT_ENGINE_OPS_CPU_MATH_INT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DT_EXP_MIN -87.3f
#define DT_EXP_MAX 87.0f

static inline float dt_exp(float x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float shifter = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float held = x < DT_EXP_MIN ? DT_EXP_MIN : x > DT_EXP_MAX ? DT_EXP_MAX : x;
    float shifted = held * log2e + shifter;
    float n = shifted - shifter;
    float r = (held - n * ln2_high) - n * ln2_low;
    float p = 1.0f / 5040.0f;
    uint32_t bits;
    float scale;

    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &shifted, sizeof bits); /* n is in the low bits of `shifted` */
    bits = (bits + 127u) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return x < DT_EXP_MIN ? 0.0f : p * scale;
}

static inline float dt_sigmoid(float x)
{
    return 1.0f / (1.0f + dt_exp(-x));
}

static inline float dt_bell(float x)
{
    float bell = dt_exp(-0.5f * x * x);

    return fabsf(x) > 12.8f ? 0.0f : bell;
}

static inline float dt_normal(float x, float bell)
{
    float q = 1.0f / (1.0f + 0.35f * fabsf(x));
    float p = -0.029095137f, tail;

    p = p * q + 0.14371975f;
    p = p * q - 0.25518265f;
    p = p * q + 0.15855280f;
    p = p * q - 0.022671120f;
    p = p * q + 0.10531704f;
    p = p * q + 0.11988273f;
    p = p * q + 0.13985476f;
    p = p * q + 0.13962182f;
    tail = bell * p * q;
    return x < 0.0f ? tail : 1.0f - tail;
}

#endif
