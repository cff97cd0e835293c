/* gelu: the tanh approximation, forward and backward (ops.h), with 0.5 (1 + tanh(u)) written as the
 * sigmoid of 2u, which keeps its digits where x is far below 0.
 */
#include "engine/ops/cuda/flat.cuh"

#define ROOT_2_OVER_PI 0.7978845608028654f
#define CUBIC          0.044715f

__device__ inline float gate(float x)
{
    return 1.0f / (1.0f + expf(-2.0f * ROOT_2_OVER_PI * (x + CUBIC * x * x * x)));
}

struct gelu {
    __device__ float operator()(int64_t, float x, float) const { return x * gate(x); }
};

struct gelu_slope {
    __device__ float operator()(int64_t, float dy, float x) const
    {
        float g = gate(x), inner = ROOT_2_OVER_PI * (1.0f + 3.0f * CUBIC * x * x);

        return dy * (g + x * g * (1.0f - g) * 2.0f * inner);
    }
};

dt_status dt_cuda_gelu_forward(dt_device *device, dt_tensor *y, const dt_tensor *x, dt_error *err)
{
    return dt_flat_run(device, y, x, NULL, "gelu", gelu(), err);
}

dt_status dt_cuda_gelu_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                const dt_tensor *x, dt_error *err)
{
    return dt_flat_run(device, dx, dy, x, "gelu", gelu_slope(), err);
}
