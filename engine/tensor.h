/* tensor: a view of device memory with a type and a shape. Owns nothing.
 *
 * Row-major and contiguous; the last dimension runs fastest.
 */
#ifndef DT_ENGINE_TENSOR_H
#define DT_ENGINE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_dtype { DT_F32, DT_BF16, DT_F16, DT_I32, DT_DTYPE_COUNT } dt_dtype;

#define DT_MAX_DIMS 4

typedef struct dt_tensor {
    void *data; /* NULL: the tensor is left out (a missing bias, say) */
    dt_dtype dtype;
    int ndim;
    int64_t dim[DT_MAX_DIMS];
} dt_tensor;

size_t dt_dtype_bytes(dt_dtype dtype);
const char *dt_dtype_name(dt_dtype dtype); /* "F32", "BF16", "F16", "I32": safetensors' names */

int64_t dt_tensor_elems(const dt_tensor *tensor);
size_t dt_tensor_bytes(const dt_tensor *tensor);

dt_tensor dt_tensor_1d(void *data, dt_dtype dtype, int64_t a);
dt_tensor dt_tensor_2d(void *data, dt_dtype dtype, int64_t a, int64_t b);
dt_tensor dt_tensor_3d(void *data, dt_dtype dtype, int64_t a, int64_t b, int64_t c);

/* The product of all dimensions but the last; the last. Most ops work on rows. */
int64_t dt_tensor_rows(const dt_tensor *tensor);
int64_t dt_tensor_cols(const dt_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
