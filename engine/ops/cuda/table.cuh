/* table: declares the table of all CUDA ops, for the function that opens a device. */
#ifndef DT_ENGINE_OPS_CUDA_TABLE_CUH
#define DT_ENGINE_OPS_CUDA_TABLE_CUH

#include "engine/ops/cuda/cuda_int.cuh"

const dt_ops *dt_cuda_ops();

#endif
