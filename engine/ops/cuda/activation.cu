/* - tanh(x)^2 as a product of two sigmoids. */
#include "engine/ops/cuda/flat.cuh"

#define ROOT_2_OVER_PI 0.7978845608028654f
#define CUBIC          0.044715f
#define ROOT_HALF      0.7071067811865476f
#define DENSITY        0.3989422804014327f /* 1/sqrt(2 pi) */

__device__ inline float gate(float x)
{
    return 1.0f / (1.0f + expf(-2.0f * ROOT_2_OVER_PI * (x + CUBIC * x * x * x)));
}

struct gelu_tanh {
    __device__ float operator()(int64_t, float x, float) const { return x * gate(x); }
};

struct gelu_tanh_slope {
    __device__ float operator()(int64_t, float dy, float x) const
    {
        float g = gate(x), inner = ROOT_2_OVER_PI * (1.0f + 3.0f * CUBIC * x * x);

        return dy * (g + x * g * (1.0f - g) * 2.0f * inner);
    }
};

__device__ inline float below(float x)
{
    return 0.5f * erfcf(-ROOT_HALF * x);
}

struct gelu {
    __device__ float operator()(int64_t, float x, float) const { return x * below(x); }
};

struct gelu_slope {
    __device__ float operator()(int64_t, float dy, float x) const
    {
        return dy * (below(x) + x * DENSITY * expf(-0.5f * x * x));
    }
};

struct relu {
    __device__ float operator()(int64_t, float x, float) const { return x > 0.0f ? x : 0.0f; }
};

struct relu_slope {
    __device__ float operator()(int64_t, float dy, float x) const { return x > 0.0f ? dy : 0.0f; }
};

struct hyperbolic {
    __device__ float operator()(int64_t, float x, float) const { return tanhf(x); }
};

struct hyperbolic_slope {
    __device__ float operator()(int64_t, float dy, float x) const
    {
        return dy * 4.0f / ((1.0f + expf(-2.0f * x)) * (1.0f + expf(2.0f * x)));
    }
};

dt_status dt_cuda_activation_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                     dt_activation_kind kind, dt_error *err)
{
    switch (kind) {
    case DT_ACTIVATION_GELU:
        return dt_flat_run(device, y, x, NULL, "activation", gelu(), err);
    case DT_ACTIVATION_RELU:
        return dt_flat_run(device, y, x, NULL, "activation", relu(), err);
    case DT_ACTIVATION_TANH:
        return dt_flat_run(device, y, x, NULL, "activation", hyperbolic(), err);
    case DT_ACTIVATION_GELU_TANH:
        break;
    }
    return dt_flat_run(device, y, x, NULL, "activation", gelu_tanh(), err);
}

dt_status dt_cuda_activation_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                      const dt_tensor *x, dt_activation_kind kind, dt_error *err)
{
    switch (kind) {
    case DT_ACTIVATION_GELU:
        return dt_flat_run(device, dx, dy, x, "activation", gelu_slope(), err);
    case DT_ACTIVATION_RELU:
        return dt_flat_run(device, dx, dy, x, "activation", relu_slope(), err);
    case DT_ACTIVATION_TANH:
        return dt_flat_run(device, dx, dy, x, "activation", hyperbolic_slope(), err);
    case DT_ACTIVATION_GELU_TANH:
        break;
    }
    return dt_flat_run(device, dx, dy, x, "activation", gelu_tanh_slope(), err);
}
