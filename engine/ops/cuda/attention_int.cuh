/* attention_int: declares the implementations of attention (formulas: ops.h) and what they share.
 *
 *   attention.cu         chooses one of them; computes the sums of dout * out for all backward passes
 *   attention_plain.cu   any type, mask and odd size, heads up to 256; one warp per row, fp32 arithmetic
 *   attention_flash.cu   bf16 and fp16, heads of 64 and 128, tiles on the tensor cores; causal and full
 *                        masks; backward only if there are as many queries as keys
 *   attention_wgmma.cu   the forward pass of attention_flash.cu without dropout, for sm_90a: warpgroup
 *                        products, tiles by bulk copies
 *   attention_own.cu     chooses between attention_flash.cu and attention_wgmma.cu
 *   attention_cudnn.cu   cuDNN: only causal forward passes of packed heads that attention_flash.cu
 *                        supports
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH

#include "engine/ops/cuda/cuda_int.cuh"

/* Rows of heads (heads.h) in the form that kernels use; dt_attention has their number and width. */
struct dt_attention_rows {
    void *data;
    int64_t row, sequence; /* strides, in elements */
};

/* The arguments of one call.
 * Heads  `bh` numbers the query heads of all sequences, `bg` the key heads
 * Grids  one-dimensional, all blocks of a head contiguous: batch * heads may exceed 65,535, the limit
 *        of the other dimensions of a grid
 */
struct dt_attention {
    int64_t batch, queries, keys, d;
    int64_t heads, groups, group;  /* query heads; key heads; query heads per key head */
    int64_t first_head, all_heads; /* of the dropout index (ops.h) */
    dt_attention_rows q, k, v, dq, dk, dv;
    const void *out, *dout; /* (B,Q,H*D) */
    void *out_written;
    float *lse;         /* (B,H,Q); forward writes it */
    const float *delta; /* (B,H,Q): sum over d of dout * out; backward only */
    dt_mask_kind mask;
    const int32_t *starts;  /* (B,K); SEGMENTS only */
    const int32_t *lengths; /* (B); LENGTHS only */
    float scale;            /* 1 / sqrt(D) */
    float p, keep;          /* dropout probability, 1 / (1 - p) */
    dt_philox_key key;
};

/* Return row `row` of a query head, and of the key head that it uses. */
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

/* Returns row `row` of out or dout. */
template <typename T>
__device__ inline T *dt_attention_out_row(const dt_attention &a, const void *out, int64_t bh,
                                          int64_t row)
{
    return (T *)out + ((bh / a.heads * a.queries + row) * a.heads + bh % a.heads) * a.d;
}

/* Returns the first query head that uses a key head. */
__device__ inline int64_t dt_attention_head_of(const dt_attention &a, int64_t bg)
{
    return bg * a.group; /* heads = groups * group */
}

/* Return the first and the last key that a query sees, for all masks but LENGTHS. A query beyond
 * the sequence may see all keys. */
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

/* Returns the dropout factor of (query, key) of head `bh`: 0 or keep. `drawn` is a.key with its
 * clock read: the step number may be in memory, and is read once. */
__device__ inline float dt_attention_mask(const dt_attention &a, const dt_philox_key &drawn,
                                          int64_t bh, int64_t query, int64_t key)
{
    int64_t head =
        a.all_heads == a.heads ? bh : bh / a.heads * a.all_heads + a.first_head + bh % a.heads;
    uint64_t index =
        ((uint64_t)head * (uint64_t)a.queries + (uint64_t)query) * (uint64_t)a.keys + (uint64_t)key;
    dt_philox_block block = dt_philox_draw(&drawn, index / 4);

    /* indexing the four words would move them from registers to memory */
    uint32_t low = index & 1 ? block.word[1] : block.word[0];
    uint32_t high = index & 1 ? block.word[3] : block.word[2];

    return dt_philox_uniform(index & 2 ? high : low) >= a.p ? a.keep : 0.0f;
}

dt_status dt_attention_plain_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
dt_status dt_attention_plain_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* Computes the forward pass with cuDNN, if it is chosen for the call. *done false: the caller must
 * run the built-in kernel, and all output is unspecified. */
dt_status dt_attention_cudnn_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     bool *done, dt_error *err);

bool dt_attention_flash_has(const dt_attention &a, dt_dtype dtype);
dt_status dt_attention_flash_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
/* Like dt_attention_cudnn_forward, with the kernel for sm_90a (attention_own.cu). */
dt_status dt_attention_own_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                   dt_error *err);
dt_status dt_attention_flash_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

/* Computes a call for which dt_attention_flash_has() is true, without dropout, on GPUs of compute
 * capability 9.0. patience: how often a thread tests a barrier before it continues regardless, so
 * that a hang becomes wrong results; 0: no limit. */
dt_status dt_attention_wgmma_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     unsigned patience, dt_error *err);

#endif
