/* cast: out := x in out's type; zero: x := 0. */
#include "engine/ops/cuda/cuda_int.cuh"

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
