/* gelu: the tanh approximation, forward and backward (ops.h). */
#include "engine/ops/cuda/flat.cuh"

#define ROOT_2_OVER_PI 0.7978845608028654f
#define CUBIC          0.044715f

struct gelu {
    __device__ float operator()(int64_t, float x, float) const
    {
        return 0.5f * x * (1.0f + tanhf(ROOT_2_OVER_PI * (x + CUBIC * x * x * x)));
    }
};

struct gelu_slope {
    __device__ float operator()(int64_t, float dy, float x) const
    {
        float t = tanhf(ROOT_2_OVER_PI * (x + CUBIC * x * x * x));
        float inner = ROOT_2_OVER_PI * (1.0f + 3.0f * CUBIC * x * x);

        return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner);
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
