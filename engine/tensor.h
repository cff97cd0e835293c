/* tensor: describes a view of device memory with a type and a shape. Owns nothing.
 *
 * Row-major and contiguous; the last dimension varies fastest.
 */
#ifndef DT_ENGINE_TENSOR_H
#define DT_ENGINE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_MAX_DIMS 4

typedef struct dt_tensor {
    void *data; /* NULL: the tensor is omitted (for example a missing bias) */
    dt_dtype dtype;
    int ndim;
    int64_t dim[DT_MAX_DIMS];
} dt_tensor;

int64_t dt_tensor_elems(const dt_tensor *tensor);
size_t dt_tensor_bytes(const dt_tensor *tensor);

dt_tensor dt_tensor_1d(void *data, dt_dtype dtype, int64_t a);
dt_tensor dt_tensor_2d(void *data, dt_dtype dtype, int64_t a, int64_t b);
dt_tensor dt_tensor_3d(void *data, dt_dtype dtype, int64_t a, int64_t b, int64_t c);

/* rows: the product of all dimensions except the last; cols: the last. Most ops work on rows. */
int64_t dt_tensor_rows(const dt_tensor *tensor);
int64_t dt_tensor_cols(const dt_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
