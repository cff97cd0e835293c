/* emulated bf16: 16 bits, rounded to nearest even. */
#ifndef DT_EMULATED_CUDA_BF16_H
#define DT_EMULATED_CUDA_BF16_H

#include "cuda_runtime.h"

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    if (x != x)
        return {0x7fff};
    bits += 0x7fff + (bits >> 16 & 1);
    return {(uint16_t)(bits >> 16)};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high)
{
    return {__float2bfloat16_rn(low), __float2bfloat16_rn(high)};
}

#endif
