#include "engine/tensor.h"

int64_t dt_tensor_elems(const dt_tensor *tensor)
{
    return dt_tensor_rows(tensor) * dt_tensor_cols(tensor);
}

size_t dt_tensor_bytes(const dt_tensor *tensor)
{
    return (size_t)dt_tensor_elems(tensor) * dt_dtype_bytes(tensor->dtype);
}

static dt_tensor make(void *data, dt_dtype dtype, int ndim, int64_t a, int64_t b, int64_t c)
{
    dt_tensor tensor = {data, dtype, ndim, {a, b, c, 1}};
    return tensor;
}

dt_tensor dt_tensor_1d(void *data, dt_dtype dtype, int64_t a)
{
    return make(data, dtype, 1, a, 1, 1);
}

dt_tensor dt_tensor_2d(void *data, dt_dtype dtype, int64_t a, int64_t b)
{
    return make(data, dtype, 2, a, b, 1);
}

dt_tensor dt_tensor_3d(void *data, dt_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    return make(data, dtype, 3, a, b, c);
}

int64_t dt_tensor_rows(const dt_tensor *tensor)
{
    int64_t rows = 1;

    for (int i = 0; i + 1 < tensor->ndim; i++)
        rows *= tensor->dim[i];
    return rows;
}

int64_t dt_tensor_cols(const dt_tensor *tensor)
{
    return tensor->ndim > 0 ? tensor->dim[tensor->ndim - 1] : 1;
}
