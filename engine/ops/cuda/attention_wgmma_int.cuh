/* attention_wgmma_int: what forward and backward pass by warpgroups share. */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_WGMMA_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_WGMMA_INT_CUH

#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/hopper.cuh"
#include "engine/ops/cuda/tile.cuh"

#define DT_GROUP      128 /* threads of a warpgroup */
#define DT_GROUP_ROWS 64  /* of its products */
#define DT_PANEL      64  /* elements of a row of one */
#define DT_PANEL_ROW  128 /* bytes */
#define DT_SWIZZLED   1024u

/* Code for sm_90a alone, which emulated cards run as well. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(DT_EMULATED_CUDA_RUNTIME_H)
#define DT_HAS_WGMMA 1
#else
#define DT_HAS_WGMMA 0
#endif

__device__ inline dt_shared dt_swizzled_at(const void *memory)
{
    return (dt_shared_at(memory) + (DT_SWIZZLED - 1)) & ~(dt_shared)(DT_SWIZZLED - 1);
}

/* Which warpgroup of the block this thread is of; the compiler learns that a warp has one answer. */
__device__ inline int dt_group()
{
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / DT_GROUP, 0);
}

/* Buffers that are filled and used in turn: which is the n-th, and the parity of the phase in which it
 * was filled that time. */
template <int STAGES> __device__ inline int dt_stage(int n)
{
    return n % STAGES;
}
template <int STAGES> __device__ inline unsigned dt_parity(int n)
{
    return (unsigned)(n / STAGES) & 1;
}

#endif
