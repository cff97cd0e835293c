/* attention_int: what the ways to compute attention share (ops.h has the formulas).
 *
 *   attention.cu         which way, and the sums of dout * out that both backward passes need
 *   attention_plain.cu   any type and any head of up to 256, a warp a row: fp32, and odd sizes
 *   attention_flash.cu   bf16 and fp16, heads of 64 and 128, tiles on the tensor cores
 *   attention_cudnn.cu   causal, forward alone, of the shapes of attention_flash.cu, by cuDNN
 */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_INT_CUH

#include "engine/ops/cuda/cuda_int.cuh"

/* Of one call. Query, key and value of head h start at h*D, C + h*D and 2C + h*D of a row of qkv.
 * Query i of a call stands at place t - queries + i of its sequence.
 * Grids  one-dimensional, all blocks of a head side by side: batch * heads may be beyond the 65,535
 *        that the other dimensions of a grid can have
 */
struct dt_attention {
    int64_t batch, t, heads, d, c;
    int64_t queries; /* of each sequence, its last ones; backward: t */
    const void *qkv, *out, *dout;
    void *out_written, *dqkv;
    float *lse;         /* (B,H,queries); forward writes it */
    const float *delta; /* (B,H,T): sum over d of dout * out; backward */
    bool causal;
    float scale;   /* 1 / sqrt(D) */
    float p, keep; /* dropout of the probabilities, 1 / (1 - p) */
    dt_philox_key key;
};

/* The last key that a query sees; one beyond the sequence may see all of it. */
__device__ inline int64_t dt_attention_last_key(const dt_attention &a, int64_t query)
{
    return a.causal ? query : a.t - 1;
}

/* The factor of probability (query, key), places in the sequence, of head `bh`: 0 or keep. `drawn`:
 * a.key as it is now, since a step's number may lie in memory, which is read once. */
__device__ inline float dt_attention_mask(const dt_attention &a, const dt_philox_key &drawn,
                                          int64_t bh, int64_t query, int64_t key)
{
    uint64_t index =
        ((uint64_t)bh * (uint64_t)a.t + (uint64_t)query) * (uint64_t)a.t + (uint64_t)key;
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

/* *done is false where ours is to run: nothing counts as written then. */
dt_status dt_attention_cudnn_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     bool *done, dt_error *err);

bool dt_attention_flash_has(const dt_attention &a, dt_dtype dtype);
dt_status dt_attention_flash_forward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                     dt_error *err);
dt_status dt_attention_flash_backward(dt_cuda_state *state, const dt_attention &a, dt_dtype dtype,
                                      dt_error *err);

#endif
