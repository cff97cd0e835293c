/* hopper_map: how bulk copies see rows of heads: boxes of rows of one head, 64 elements wide, swizzled
 * by 128 bytes (hopper.cuh). A map is given to a kernel as a __grid_constant__ parameter. */
#ifndef DT_ENGINE_OPS_CUDA_HOPPER_MAP_CUH
#define DT_ENGINE_OPS_CUDA_HOPPER_MAP_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/error.h"

#ifdef DT_EMULATED_CUDA_RUNTIME_H
struct alignas(64) dt_tensor_map { /* what the driver's 128 bytes say */
    unsigned char *data;
    uint64_t size[4], stride[3]; /* the strides in bytes, of all but the first */
    uint32_t box_rows;
};
#else
#include <cuda.h>
typedef CUtensorMap dt_tensor_map;
#endif

/* 16-bit elements: `sequences` of `rows` of `heads` of `width`, strides of the first two in elements. */
struct dt_heads_in_memory {
    const void *data; /* at a multiple of 16 bytes; the strides are, too */
    int64_t width, heads, rows, sequences, row_stride, sequence_stride;
};

/* box_rows: of a copy, at most 256. DT_ERR_UNSUPPORTED: the driver cannot. */
dt_status dt_tensor_map_make(dt_tensor_map *out, const dt_heads_in_memory *heads, unsigned box_rows,
                             dt_error *err);

#endif
