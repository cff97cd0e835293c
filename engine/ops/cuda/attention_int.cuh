/* attention_int: what the ways to compute attention share (ops.h has the formulas).
 *
 *   attention.cu         which way, and the sums of dout * out that both backward passes need
 *   attention_plain.cu   any type, mask and head of up to 256, a warp a row: fp32, and odd sizes
 *   attention_flash.cu   bf16 and fp16, heads of 64 and 128, tiles on the tensor cores; causal and
 *                        full, backward of as many queries as keys
 *   attention_wgmma.cu   forward of these without dropout, for sm_90a: products of warpgroups, tiles by
 *                        bulk copies
 *   attention_own.cu     which of these two
 *   attention_cudnn.cu   causal, forward alone, of packed heads that attention_flash.cu takes, by
 *                        cuDNN
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH

#include "engine/ops/cuda/cuda_int.cuh"

/* Rows of heads (heads.h), as a kernel takes them; their number and width are the call's. */
struct dt_attention_rows {
    void *data;
    int64_t row, sequence; /* strides, in elements */
};

/* Of one call.
 * Heads  `bh` counts heads of queries over all sequences, `bg` heads of keys
 * Grids  one-dimensional, all blocks of a head side by side: batch * heads may be beyond the 65,535
 *        that the other dimensions of a grid can have
 */
struct dt_attention {
    int64_t batch, queries, keys, d;
    int64_t heads, groups, group; /* of queries; of keys; queries' heads for each of these */
    dt_attention_rows q, k, v, dq, dk, dv;
    const void *out, *dout; /* (B,Q,H*D) */
    void *out_written;
    float *lse;         /* (B,H,Q); forward writes it */
    const float *delta; /* (B,H,Q): sum over d of dout * out; backward */
    dt_mask_kind mask;
    const int32_t *starts;  /* (B,K); of segments */
    const int32_t *lengths; /* (B); of lengths */
    float scale;            /* 1 / sqrt(D) */
    float p, keep;          /* dropout of the probabilities, 1 / (1 - p) */
    dt_philox_key key;
};

/* Row `row` of a head of queries, and of the head of keys that goes with it. */
template <typename T>
__device__ inline T *dt_attention_query_row(const dt_attention &a, const dt_attention_rows &x,
                                            int64_t bh, int64_t row)
{
    return (T *)x.data + bh / a.heads * x.sequence + row * x.row + bh % a.heads * a.d;
}

template <typename T>
__device__ inline T *dt_attention_key_row(const dt_attention &a, const dt_attention_rows &x,
                                          int64_t bh, int64_t row)
{
    return (T *)x.data + bh / a.heads * x.sequence + row * x.row + bh % a.heads / a.group * a.d;
}

/* Row `row` of out or dout. */
template <typename T>
__device__ inline T *dt_attention_out_row(const dt_attention &a, const void *out, int64_t bh,
                                          int64_t row)
{
    return (T *)out + ((bh / a.heads * a.queries + row) * a.heads + bh % a.heads) * a.d;
}

/* Returns the first head of queries that uses a head of keys. */
__device__ inline int64_t dt_attention_head_of(const dt_attention &a, int64_t bg)
{
    return bg * a.group; /* heads = groups * group */
}

/* The first key that a query sees, and the last, of all masks but lengths; one beyond the sequence may
 * see all of it. */
__device__ inline int64_t dt_attention_first_key(const dt_attention &a, int64_t bh, int64_t query)
{
    if (a.mask != DT_MASK_SEGMENTS)
        return 0;
    return a.starts[bh / a.heads * a.keys + query + a.keys - a.queries];
}

__device__ inline int64_t dt_attention_last_key(const dt_attention &a, int64_t query)
{
    return a.mask == DT_MASK_FULL ? a.keys - 1 : query + a.keys - a.queries;
}

/* The factor of probability (query, key) of head `bh`: 0 or keep. `drawn`: a.key as it is now,
 * since a step's number may lie in memory, which is read once. */
__device__ inline float dt_attention_mask(const dt_attention &a, const dt_philox_key &drawn,
                                          int64_t bh, int64_t query, int64_t key)
{
    uint64_t index =
        ((uint64_t)bh * (uint64_t)a.queries + (uint64_t)query) * (uint64_t)a.keys + (uint64_t)key;
    dt_philox_block block = dt_philox_draw(&drawn, index / 4);

    /* an index would put the four words into memory */
    uint32_t low = index & 1 ? block.word[1] : block.word[0];
    uint32_t high = index & 1 ? block.word[3] : block.word[2];

    return dt_philox_uniform(index & 2 ? high : low) >= a.p ? a.keep : 0.0f;
}

dt_status dt_attention_plain_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
dt_status dt_attention_plain_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* *done false: the built-in kernel must run, and all output is unspecified. */
dt_status dt_attention_cudnn_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     bool *done, dt_error *err);

bool dt_attention_flash_has(const dt_attention &a, dt_dtype dtype);
dt_status dt_attention_flash_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
/* As above, by the kernels for sm_90a where they are there and the faster ones (attention_own.cu). */
dt_status dt_attention_own_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                   dt_error *err);
dt_status dt_attention_flash_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* Of what dt_attention_flash_has(), without dropout, on cards of compute capability 9.0.
 * patience: how often a thread looks whether a barrier is reached before it goes on all the same, which
 * makes wrong numbers of what would hang; 0: for ever. */
dt_status dt_attention_wgmma_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     unsigned patience, dt_error *err);

#endif
