/* activation: the functions between two products: activations, gates, and soft caps. */
#include "engine/ops/cuda/cuda_int.cuh"

/* - tanh(x)^2 as a product of two sigmoids. */

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

/* gate: computes y = f(a) b over the halves of rows, 16 bytes per thread and iteration if
 * rows are aligned to them, else element by element. */

__device__ inline float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* The functions of gates, and their slopes. */
struct silu_gate {
    __device__ static float value(float x) { return x * sigmoid(x); }
    __device__ static float slope(float x)
    {
        float s = sigmoid(x);

        return s * (1.0f + x * (1.0f - s));
    }
};

struct gelu_tanh_gate {
    __device__ static float value(float x) { return x * gate(x); }
    __device__ static float slope(float x) { return gelu_tanh_slope()(0, 1.0f, x); }
};

struct gelu_gate {
    __device__ static float value(float x) { return x * below(x); }
    __device__ static float slope(float x) { return gelu_slope()(0, 1.0f, x); }
};

/* A single element, for rows that are not whole vectors. */
template <typename T> struct one {
    static constexpr int N = 1;
    T v[N];
};

/* Computes elements of y (N,F), V::N at a time. Element i belongs to row i / f, so a's element is i
 * plus one half row per earlier row. V: dt_vec<T> or one<T>. */
template <typename F, typename T, typename V>
__global__ void gate_forward(T *y, const T *x, int64_t elems, int64_t f)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.x * V::N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V::N; i < elems;
         i += stride) {
        const T *a = x + i + i / f * f;
        V left = *(const V *)a, right = *(const V *)(a + f), out;

#pragma unroll
        for (int k = 0; k < V::N; k++) {
            out.v[k] = dt_from_float<T>(F::value(dt_to_float(left.v[k])) * dt_to_float(right.v[k]));
        }
        *(V *)(y + i) = out;
    }
}

/* dx may be x: the thread that writes an element has read it before. */
template <typename F, typename T, typename V>
__global__ void gate_backward(T *dx, const T *dy, const T *x, int64_t elems, int64_t f)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.x * V::N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V::N; i < elems;
         i += stride) {
        int64_t at = i + i / f * f;
        V left = *(const V *)(x + at), right = *(const V *)(x + at + f),
          dout = *(const V *)(dy + i);
        V dleft, dright;

#pragma unroll
        for (int k = 0; k < V::N; k++) {
            float x_of = dt_to_float(left.v[k]), d = dt_to_float(dout.v[k]);

            dleft.v[k] = dt_from_float<T>(d * dt_to_float(right.v[k]) * F::slope(x_of));
            dright.v[k] = dt_from_float<T>(d * F::value(x_of));
        }
        *(V *)(dx + at) = dleft;
        *(V *)(dx + at + f) = dright;
    }
}

template <typename F>
static dt_status run_gate(dt_device *device, dt_tensor *y, const dt_tensor *x, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(y), f = dt_tensor_cols(y);

    DT_ASSERT(dt_tensor_elems(x) == 2 * elems && dt_tensor_cols(x) == 2 * f);
    if (elems == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(y->dtype, "gate", err, {
        bool whole = dt_cuda_aligned<T>(x->data, f) && dt_cuda_aligned<T>(y->data, f);
        unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * (whole ? dt_vec<T>::N : 1));

        if (whole)
            DT_CUDA_LAUNCH((gate_forward<F, T, dt_vec<T>>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)x->data, elems, f);
        else
            DT_CUDA_LAUNCH((gate_forward<F, T, one<T>>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)x->data, elems, f);
    });
    return dt_cuda_launched("gate", err);
}

template <typename F>
static dt_status run_gate_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                   const dt_tensor *x, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(dy), f = dt_tensor_cols(dy);

    DT_ASSERT(dt_tensor_elems(x) == 2 * elems && dt_tensor_elems(dx) == 2 * elems);
    if (elems == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(dy->dtype, "gate", err, {
        bool whole = dt_cuda_aligned<T>(x->data, f) && dt_cuda_aligned<T>(dx->data, f) &&
                     dt_cuda_aligned<T>(dy->data, f);
        unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * (whole ? dt_vec<T>::N : 1));

        if (whole)
            DT_CUDA_LAUNCH((gate_backward<F, T, dt_vec<T>>), blocks, DT_CUDA_BLOCK, 0,
                           state->stream, (T *)dx->data, (const T *)dy->data, (const T *)x->data,
                           elems, f);
        else
            DT_CUDA_LAUNCH((gate_backward<F, T, one<T>>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)dx->data, (const T *)dy->data, (const T *)x->data, elems, f);
    });
    return dt_cuda_launched("gate", err);
}

dt_status dt_cuda_gate_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                               dt_gate_kind kind, dt_error *err)
{
    switch (kind) {
    case DT_GATE_GELU_TANH:
        return run_gate<gelu_tanh_gate>(device, y, x, err);
    case DT_GATE_GELU:
        return run_gate<gelu_gate>(device, y, x, err);
    case DT_GATE_SILU:
        break;
    }
    return run_gate<silu_gate>(device, y, x, err);
}

dt_status dt_cuda_gate_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                const dt_tensor *x, dt_gate_kind kind, dt_error *err)
{
    switch (kind) {
    case DT_GATE_GELU_TANH:
        return run_gate_backward<gelu_tanh_gate>(device, dx, dy, x, err);
    case DT_GATE_GELU:
        return run_gate_backward<gelu_gate>(device, dx, dy, x, err);
    case DT_GATE_SILU:
        break;
    }
    return run_gate_backward<silu_gate>(device, dx, dy, x, err);
}

/* softcap: computes y = cap tanh(factor x / cap), or factor x. */

struct capped {
    float factor, cap; /* cap 0: none */
    __device__ float operator()(int64_t, float x, float) const
    {
        return cap == 0.0f ? factor * x : cap * tanhf(factor * x / cap);
    }
};

struct capped_slope {
    float factor, cap;
    __device__ float operator()(int64_t, float dy, float y) const
    {
        return cap == 0.0f ? factor * dy : dy * factor * (1.0f - y / cap * (y / cap));
    }
};

dt_status dt_cuda_softcap_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                  double factor, double cap, dt_error *err)
{
    return dt_flat_run(device, y, x, NULL, "softcap", capped{(float)factor, (float)cap}, err);
}

dt_status dt_cuda_softcap_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                   const dt_tensor *y, double factor, double cap, dt_error *err)
{
    return dt_flat_run(device, dx, dy, cap == 0 ? NULL : y, "softcap",
                       capped_slope{(float)factor, (float)cap}, err);
}
