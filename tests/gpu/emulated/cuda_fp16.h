/* emulated fp16, with the compiler's type. */
#ifndef DT_EMULATED_CUDA_FP16_H
#define DT_EMULATED_CUDA_FP16_H

#include "cuda_runtime.h"

struct __half {
    uint16_t bits;
};
struct __half2 {
    __half x, y;
};

extern "C" float dt_emulated_half_to_float(uint16_t bits);
extern "C" uint16_t dt_emulated_float_to_half(float x);

static inline float __half2float(__half x)
{
    return dt_emulated_half_to_float(x.bits);
}

static inline __half __float2half_rn(float x)
{
    return {dt_emulated_float_to_half(x)};
}

static inline __half2 __floats2half2_rn(float low, float high)
{
    return {__float2half_rn(low), __float2half_rn(high)};
}

#endif
