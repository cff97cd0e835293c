/* flat: applies a function to every element, 16 bytes per thread and iteration.
 *
 * F is called as f(index, values...) with fp32 values and returns the fp32 result; see activation.cu.
 */
#ifndef DT_ENGINE_OPS_CUDA_FLAT_CUH
#define DT_ENGINE_OPS_CUDA_FLAT_CUH

#include "engine/ops/cuda/cuda_int.cuh"

/* y[i] = f(i, a[i]), or f(i, a[i], b[i]) with TWO; y may be a or b. */
template <typename T, bool TWO, typename F>
__global__ void dt_flat_kernel(T *y, const T *a, const T *b, int64_t elems, F f, bool aligned)
{
    constexpr int N = dt_vec<T>::N;
    int64_t stride = (int64_t)gridDim.x * blockDim.x * N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < elems; i += stride) {
        dt_vec<T> x, z, out;
        bool whole = aligned && i + N <= elems;

        if (whole) {
            x = *(const dt_vec<T> *)(a + i);
            if (TWO)
                z = *(const dt_vec<T> *)(b + i);
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                x.v[k] = a[i + k];
                if (TWO)
                    z.v[k] = b[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            out.v[k] =
                dt_from_float<T>(f(i + k, dt_to_float(x.v[k]), TWO ? dt_to_float(z.v[k]) : 0.0f));
        if (whole) {
            *(dt_vec<T> *)(y + i) = out;
        } else {
            for (int k = 0; k < N && i + k < elems; k++)
                y[i + k] = out.v[k];
        }
    }
}

/* Views that are not aligned to 16 bytes are processed element by element. */
template <typename F>
static dt_status dt_flat_run(dt_device *device, dt_tensor *y, const dt_tensor *a,
                             const dt_tensor *b, const char *op, F f, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(y);
    uintptr_t all = (uintptr_t)y->data | (uintptr_t)a->data | (uintptr_t)(b ? b->data : NULL);

    DT_ASSERT(dt_tensor_elems(a) == elems && y->dtype == a->dtype);
    if (elems == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(y->dtype, op, err, {
        unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * dt_vec<T>::N);

        if (b != NULL)
            DT_CUDA_LAUNCH((dt_flat_kernel<T, true, F>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)a->data, (const T *)b->data, elems, f,
                           (all & 15) == 0);
        else
            DT_CUDA_LAUNCH((dt_flat_kernel<T, false, F>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)y->data, (const T *)a->data, (const T *)NULL, elems, f,
                           (all & 15) == 0);
    });
    return dt_cuda_launched(op, err);
}

#endif
