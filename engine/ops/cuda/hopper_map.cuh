/* hopper_map: describes rows of heads to bulk copies: boxes of rows of one head, 64 elements wide,
 * swizzled by 128 bytes (hopper.cuh). A map is passed to a kernel as a __grid_constant__ parameter. */
#ifndef DT_ENGINE_OPS_CUDA_HOPPER_MAP_CUH
#define DT_ENGINE_OPS_CUDA_HOPPER_MAP_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/error.h"

#ifdef DT_EMULATED_CUDA_RUNTIME_H
struct alignas(64) dt_tensor_map { /* opaque: 128 bytes that the driver writes */
    unsigned char *data;
    uint64_t size[4], stride[3]; /* strides in bytes, of all dimensions but the first */
    uint32_t box_rows;
};
#else
#include <cuda.h>
typedef CUtensorMap dt_tensor_map;
#endif

/* A tensor of 16-bit elements: sequences of rows of heads. The strides are in elements. */
struct dt_heads_in_memory {
    const void *data; /* data and strides: multiples of 16 bytes */
    int64_t width, heads, rows, sequences, row_stride, sequence_stride;
};

/* box_rows: rows per copy, at most 256. DT_ERR_UNSUPPORTED if the driver cannot make the map. */
dt_status dt_tensor_map_make(dt_tensor_map *out, const dt_heads_in_memory *heads, unsigned box_rows,
                             dt_error *err);

#endif
