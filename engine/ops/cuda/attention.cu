/* attention: which way a call goes (attention_int.cuh). */
#include <math.h>

#include "engine/ops/cuda/attention_int.cuh"

/* delta[b,h,t] = sum over d of dout * out. A warp a (row, head). */
template <typename T>
__global__ void row_products(float *delta, const T *dout, const T *out, int64_t batch, int64_t t,
                             int64_t heads, int64_t d)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = (int)threadIdx.x % 32;
    int64_t row = i / heads, head = i % heads;
    float sum = 0.0f;

    if (row >= batch * t)
        return;
    dout += (row * heads + head) * d;
    out += (row * heads + head) * d;
    for (int64_t j = lane; j < d; j += 32)
        sum += dt_to_float(dout[j]) * dt_to_float(out[j]);
    sum = dt_warp_sum(sum);
    if (lane == 0)
        delta[(row / t * heads + head) * t + row % t] = sum;
}

static dt_attention describe(const dt_tensor *qkv, const dt_tensor *lse,
                             const dt_attention_args *args)
{
    dt_attention a = {};
    double p = args->p;

    DT_ASSERT(qkv->ndim == 3 && qkv->dim[2] % (3 * args->heads) == 0 && lse->dtype == DT_F32);
    DT_ASSERT(p >= 0 && p < 1 && (p == 0 || args->key != NULL));
    a.batch = qkv->dim[0];
    a.t = qkv->dim[1];
    a.queries = a.t;
    a.c = qkv->dim[2] / 3;
    a.heads = args->heads;
    a.d = a.c / a.heads;
    a.causal = args->causal;
    a.qkv = qkv->data;
    a.lse = (float *)lse->data;
    a.scale = (float)(1.0 / sqrt((double)a.d));
    a.p = (float)p;
    a.keep = (float)(1.0 / (1.0 - p));
    if (args->key != NULL)
        a.key = *args->key;
    return a;
}

dt_status dt_cuda_attention_forward(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                    const dt_tensor *qkv, const dt_attention_args *args,
                                    dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_attention a = describe(qkv, lse, args);
    dt_status st = DT_OK;
    bool done = false;

    DT_ASSERT(out->ndim == 3 && out->dim[0] == a.batch && out->dim[1] <= a.t &&
              dt_tensor_elems(lse) == a.batch * a.heads * out->dim[1]);
    a.queries = out->dim[1];
    a.out_written = out->data;
    if (a.batch * a.queries == 0)
        return DT_OK;
    DT_TRY(dt_attention_cudnn_forward(device, a, qkv->dtype, &done, err));
    if (done)
        return DT_OK;
    if (dt_attention_flash_has(a, qkv->dtype))
        return dt_attention_flash_forward(state, a, qkv->dtype, err);
    return dt_attention_plain_forward(state, a, qkv->dtype, err);
out:
    return st;
}

dt_status dt_cuda_attention_backward(dt_device *device, dt_tensor *dqkv, const dt_tensor *dout,
                                     const dt_tensor *qkv, const dt_tensor *out,
                                     const dt_tensor *lse, const dt_attention_args *args,
                                     dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_attention a = describe(qkv, lse, args);
    int64_t rows = a.batch * a.t * a.heads;
    dt_status st = DT_OK;
    void *scratch;

    a.out = out->data;
    a.dout = dout->data;
    a.dqkv = dqkv->data;
    if (rows == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, (size_t)rows * sizeof(float), err));
    a.delta = (const float *)scratch;
    DT_CUDA_DISPATCH(qkv->dtype, "attention", err, {
        DT_CUDA_LAUNCH((row_products<T>), (unsigned)dt_cuda_ceil(rows * 32, DT_CUDA_BLOCK),
                       DT_CUDA_BLOCK, 0, state->stream, (float *)scratch, (const T *)a.dout,
                       (const T *)a.out, a.batch, a.t, a.heads, a.d);
    });
    DT_TRY(dt_cuda_launched("attention", err));
    if (dt_attention_flash_has(a, qkv->dtype))
        DT_TRY(dt_attention_flash_backward(state, a, qkv->dtype, err));
    else
        DT_TRY(dt_attention_plain_backward(state, a, qkv->dtype, err));
out:
    return st;
}
