/* attention: chooses the kernel for each call (attention_int.cuh). */
#include <math.h>

#include "engine/ops/cuda/attention_int.cuh"

/* delta[b,h,q] = sum over d of dout * out. One warp per (row, head). */
template <typename T>
__global__ void row_products(float *delta, const T *dout, const T *out, int64_t batch,
                             int64_t queries, int64_t heads, int64_t d)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = (int)threadIdx.x % 32;
    int64_t row = i / heads, head = i % heads;
    float sum = 0.0f;

    if (row >= batch * queries)
        return;
    dout += (row * heads + head) * d;
    out += (row * heads + head) * d;
    for (int64_t j = lane; j < d; j += 32)
        sum += dt_to_float(dout[j]) * dt_to_float(out[j]);
    sum = dt_warp_sum(sum);
    if (lane == 0)
        delta[(row / queries * heads + head) * queries + row % queries] = sum;
}

static bool fits(const dt_heads *x, const dt_heads *like)
{
    return x->batch == like->batch && x->rows == like->rows && x->heads == like->heads &&
           x->width == like->width && x->dtype == like->dtype;
}

static dt_attention_rows rows_of(const dt_heads *x)
{
    return {x->data, x->row_stride, x->sequence_stride};
}

static dt_attention describe(const dt_qkv *x, const dt_tensor *lse, const dt_attention_args *args)
{
    dt_attention a = {};
    double p = args->p;

    a.batch = x->q.batch;
    a.queries = x->q.rows;
    a.keys = x->k.rows;
    a.heads = x->q.heads;
    a.first_head = args->first_head;
    a.all_heads = args->heads > 0 ? args->heads : a.heads;
    a.groups = x->k.heads;
    a.group = a.heads / a.groups;
    a.d = x->q.width;
    a.q = rows_of(&x->q);
    a.k = rows_of(&x->k);
    a.v = rows_of(&x->v);
    a.mask = args->mask;
    a.starts = (const int32_t *)args->segment_starts.data;
    a.lengths = (const int32_t *)args->key_lengths.data;
    a.lse = (float *)lse->data;
    a.scale = (float)(1.0 / sqrt((double)a.d));
    a.p = (float)p;
    a.keep = (float)(1.0 / (1.0 - p));
    if (args->key != NULL)
        a.key = *args->key;
    DT_ASSERT(fits(&x->v, &x->k) && x->k.batch == a.batch && x->k.width == a.d &&
              x->k.dtype == x->q.dtype && a.group * a.groups == a.heads);
    DT_ASSERT(a.mask == DT_MASK_FULL || a.mask == DT_MASK_LENGTHS || a.queries <= a.keys);
    DT_ASSERT(a.mask != DT_MASK_LENGTHS || (args->key_lengths.dtype == DT_I32 &&
                                            dt_tensor_elems(&args->key_lengths) == a.batch));
    DT_ASSERT(a.mask != DT_MASK_SEGMENTS ||
              (args->segment_starts.dtype == DT_I32 &&
               dt_tensor_elems(&args->segment_starts) == a.batch * a.keys));
    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == a.batch * a.heads * a.queries);
    DT_ASSERT(p >= 0 && p < 1 && (p == 0 || args->key != NULL));
    return a;
}

dt_status dt_cuda_attention_forward(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                    const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_attention a = describe(x, lse, args);
    dt_status st = DT_OK;
    bool done = false;

    DT_ASSERT(out->ndim == 3 && dt_tensor_elems(out) == a.batch * a.queries * a.heads * a.d);
    a.out_written = out->data;
    if (a.batch * a.queries == 0)
        return DT_OK;
    DT_TRY(dt_attention_cudnn_forward(device, a, x->q.dtype, &done, err));
    if (done)
        return DT_OK;
    if (dt_attention_flash_has(a, x->q.dtype))
        return dt_attention_own_forward(device, a, x->q.dtype, err);
    return dt_attention_plain_forward(state, a, x->q.dtype, err);
out:
    return st;
}

dt_status dt_cuda_attention_backward(dt_device *device, const dt_qkv *dx, const dt_tensor *dout,
                                     const dt_qkv *x, const dt_tensor *out, const dt_tensor *lse,
                                     const dt_attention_args *args, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_attention a = describe(x, lse, args);
    int64_t rows = a.batch * a.queries * a.heads;
    dt_status st = DT_OK;
    void *scratch;

    DT_ASSERT(fits(&dx->q, &x->q) && fits(&dx->k, &x->k) && fits(&dx->v, &x->v));
    a.out = out->data;
    a.dout = dout->data;
    a.dq = rows_of(&dx->q);
    a.dk = rows_of(&dx->k);
    a.dv = rows_of(&dx->v);
    if (rows == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, (size_t)rows * sizeof(float), err));
    a.delta = (const float *)scratch;
    DT_CUDA_DISPATCH(x->q.dtype, "attention", err, {
        DT_CUDA_LAUNCH((row_products<T>), (unsigned)dt_cuda_ceil(rows * 32, DT_CUDA_BLOCK),
                       DT_CUDA_BLOCK, 0, state->stream, (float *)scratch, (const T *)a.dout,
                       (const T *)a.out, a.batch, a.queries, a.heads, a.d);
    });
    DT_TRY(dt_cuda_launched("attention", err));
    if (dt_attention_flash_has(a, x->q.dtype))
        DT_TRY(dt_attention_flash_backward(state, a, x->q.dtype, err));
    else
        DT_TRY(dt_attention_plain_backward(state, a, x->q.dtype, err));
out:
    return st;
}
