/* attention_wgmma_int: defines constants and helpers for attention by warpgroups. */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_WGMMA_INT_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_WGMMA_INT_CUH

#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/hopper.cuh"
#include "engine/ops/cuda/tile.cuh"

#define DT_GROUP      128 /* threads per warpgroup */
#define DT_GROUP_ROWS 64  /* rows of a warpgroup product */
#define DT_PANEL      64  /* elements per row of a panel */
#define DT_PANEL_ROW  128 /* bytes per row of a panel */
#define DT_SWIZZLED   1024u

/* Set when compiling for sm_90a, and for the emulated GPU of the tests. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(DT_EMULATED_CUDA_RUNTIME_H)
#define DT_HAS_WGMMA 1
#else
#define DT_HAS_WGMMA 0
#endif

__device__ inline dt_shared dt_swizzled_at(const void *memory)
{
    return (dt_shared_at(memory) + (DT_SWIZZLED - 1)) & ~(dt_shared)(DT_SWIZZLED - 1);
}

/* Returns this thread's warpgroup within the block, in a form that lets the compiler know that it
 * is the same for the whole warp. */
__device__ inline int dt_group()
{
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / DT_GROUP, 0);
}

/* For buffers that are filled and used in rotation: dt_stage returns the buffer of the n-th tile,
 * dt_parity the parity of the barrier phase in which that tile fills it. */
template <int STAGES> __device__ inline int dt_stage(int n)
{
    return n % STAGES;
}
template <int STAGES> __device__ inline unsigned dt_parity(int n)
{
    return (unsigned)(n / STAGES) & 1;
}

#endif
