/* math_int: functions that a compiler can vectorise where libm's are calls.
 *
 * dt_exp      relative error < 2e-7 on [-87, 87]; 0 below -87.3, held at exp(87) above; NaN stays
 * dt_sigmoid  1 / (1 + exp(-x)), relative error < 4e-7
 *
 * exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2)/2; ln 2 in two parts (Cody and
 * Waite), exp(r) by its Taylor sum to r^7, whose rest is below 6e-9.
 * Held at 87, where the inverse is still a normal number: processors take a hundred times as long
 * over denormal ones.
 */
#ifndef DT_ENGINE_OPS_CPU_MATH_INT_H
#define DT_ENGINE_OPS_CPU_MATH_INT_H

#include <stdint.h>
#include <string.h>

#define DT_EXP_MIN -87.3f
#define DT_EXP_MAX 87.0f

static inline float dt_exp(float x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float shifter = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
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
    memcpy(&bits, &shifted, sizeof bits); /* n sits in the low bits of `shifted` */
    bits = (bits + 127u) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return x < DT_EXP_MIN ? 0.0f : p * scale;
}

static inline float dt_sigmoid(float x)
{
    return 1.0f / (1.0f + dt_exp(-x));
}

#endif
