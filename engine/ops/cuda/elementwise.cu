/* elementwise: ops that compute each element by itself: residual, blend, cast, zero, dropout. */
#include "engine/ops/cuda/cuda_int.cuh"

/* residual: computes y = a + b. */

struct add {
    __device__ float operator()(int64_t, float a, float b) const { return a + b; }
};

dt_status dt_cuda_residual_forward(dt_device *device, dt_tensor *y, const dt_tensor *a,
                                   const dt_tensor *b, dt_error *err)
{
    return dt_flat_run(device, y, a, b, "residual", add(), err);
}

/* blend: computes y = a*x + b*y. */

struct sum_of {
    float a, b;
    __device__ float operator()(int64_t, float x, float y) const { return a * x + b * y; }
};

dt_status dt_cuda_blend(dt_device *device, dt_tensor *y, const dt_tensor *x, double a, double b,
                        dt_error *err)
{
    return dt_flat_run(device, y, x, y, "blend", sum_of{(float)a, (float)b}, err);
}

/* cast: out := x in out's type; zero: x := 0. */

template <typename Out, typename In>
__global__ void convert(Out *out, const In *x, int64_t elems, bool aligned)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.x * 4;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < elems; i += stride) {
        bool whole = aligned && i + 4 <= elems;
        dt_four<In> from = dt_four_load(x, i, elems, whole);
        dt_four<Out> to;

#pragma unroll
        for (int k = 0; k < 4; k++)
            to.v[k] = dt_from_float<Out>(dt_to_float(from.v[k]));
        dt_four_store(out, i, elems, whole, to);
    }
}

template <typename In>
static dt_status cast_from(dt_cuda_state *state, dt_tensor *out, const dt_tensor *x, dt_error *err)
{
    int64_t elems = dt_tensor_elems(x);
    unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * 4);

    DT_CUDA_DISPATCH(out->dtype, "cast", err, {
        DT_CUDA_LAUNCH((convert<T, In>), blocks, DT_CUDA_BLOCK, 0, state->stream, (T *)out->data,
                       (const In *)x->data, elems,
                       dt_cuda_fours<T>(out->data) && dt_cuda_fours<In>(x->data));
    });
    return dt_cuda_launched("cast", err);
}

dt_status dt_cuda_cast(dt_device *device, dt_tensor *out, const dt_tensor *x, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);

    DT_ASSERT(dt_tensor_elems(out) == dt_tensor_elems(x));
    if (out->data == x->data && out->dtype == x->dtype)
        return DT_OK;
    if (dt_tensor_elems(x) == 0)
        return DT_OK;
    if (out->dtype == x->dtype)
        return dt_cuda_check(cudaMemcpyAsync(out->data, x->data, dt_tensor_bytes(x),
                                             cudaMemcpyDeviceToDevice, state->stream),
                             "cast", err);
    DT_CUDA_DISPATCH(x->dtype, "cast", err, { return cast_from<T>(state, out, x, err); });
    return DT_OK;
}

dt_status dt_cuda_zero(dt_device *device, dt_tensor *x, dt_error *err)
{
    return dt_cuda_check(
        cudaMemsetAsync(x->data, 0, dt_tensor_bytes(x), dt_cuda_of(device)->stream), "zero", err);
}

/* Tensors of one launch of zero_each: its arguments have room for these. Larger ones are zeroed by themselves. */
#define ZEROED      64
#define ZEROED_MOST (1 << 20) /* elements */

struct zeroed {
    float *data[ZEROED];
    int elems[ZEROED];
};

/* blockIdx.y is the tensor. */
__global__ void zero_tensors(zeroed x)
{
    float *data = x.data[blockIdx.y];
    int elems = x.elems[blockIdx.y], stride = (int)(gridDim.x * blockDim.x);

    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < elems; i += stride)
        data[i] = 0.0f;
}

dt_status dt_cuda_zero_each(dt_device *device, dt_tensor *x, int count, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;

    for (int i = 0; i < count;) {
        zeroed small = {};
        int taken = 0, most = 0;

        for (; i < count && taken < ZEROED; i++) {
            int64_t elems = dt_tensor_elems(&x[i]);

            DT_ASSERT(x[i].dtype == DT_F32);
            if (elems > ZEROED_MOST) {
                DT_TRY(dt_cuda_zero(device, &x[i], err));
                continue;
            }
            small.data[taken] = (float *)x[i].data;
            small.elems[taken++] = (int)elems;
            most = elems > most ? (int)elems : most;
        }
        if (most > 0)
            DT_CUDA_LAUNCH(zero_tensors,
                           dim3(dt_cuda_blocks(state, most, DT_CUDA_BLOCK), (unsigned)taken),
                           DT_CUDA_BLOCK, 0, state->stream, small);
    }
    DT_TRY(dt_cuda_launched("zero", err));
out:
    return st;
}

/* dropout: keeps an element with probability 1-p and scales it by 1/(1-p).
 *
 * Element i is kept if the uniform number of Philox word i is >= p (engine/philox.h), the same on every
 * backend; one Philox block serves four neighbouring elements. Forward and backward are the same function.
 */

template <typename T>
__global__ void drop(T *y, const T *x, int64_t elems, float p, float scale, dt_philox_key key,
                     bool aligned)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.x * 4;

    key = dt_philox_now(&key);
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < elems; i += stride) {
        dt_philox_block block = dt_philox_draw(&key, (uint64_t)i / 4);
        bool whole = aligned && i + 4 <= elems;
        dt_four<T> four = dt_four_load(x, i, elems, whole);

#pragma unroll
        for (int k = 0; k < 4; k++) {
            bool keep = dt_philox_uniform(block.word[k]) >= p;

            four.v[k] = dt_from_float<T>(keep ? dt_to_float(four.v[k]) * scale : 0.0f);
        }
        dt_four_store(y, i, elems, whole, four);
    }
}

static dt_status run(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                     const dt_philox_key *key, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(x);
    float scale = (float)(1.0 / (1.0 - p));

    DT_ASSERT(dt_tensor_elems(y) == elems && y->dtype == x->dtype && p >= 0 && p < 1);
    if (p == 0.0) {
        if (y->data == x->data)
            return DT_OK;
        return dt_cuda_check(cudaMemcpyAsync(y->data, x->data, dt_tensor_bytes(x),
                                             cudaMemcpyDeviceToDevice, state->stream),
                             "dropout", err);
    }
    if (elems == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(x->dtype, "dropout", err, {
        DT_CUDA_LAUNCH((drop<T>), dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * 4), DT_CUDA_BLOCK, 0,
                       state->stream, (T *)y->data, (const T *)x->data, elems, (float)p, scale,
                       *key, dt_cuda_fours<T>(y->data) && dt_cuda_fours<T>(x->data));
    });
    return dt_cuda_launched("dropout", err);
}

dt_status dt_cuda_dropout_forward(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                                  const dt_philox_key *key, dt_error *err)
{
    return run(device, y, x, p, key, err);
}

dt_status dt_cuda_dropout_backward(dt_device *device, dt_tensor *dx, const dt_tensor *dy, double p,
                                   const dt_philox_key *key, dt_error *err)
{
    return run(device, dx, dy, p, key, err);
}
