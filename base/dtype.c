#include "base/dtype.h"

static const struct {
    size_t bytes;
    const char *name;
} dtypes[DT_DTYPE_COUNT] = {
    [DT_F32] = {4, "F32"},
    [DT_BF16] = {2, "BF16"},
    [DT_F16] = {2, "F16"},
    [DT_I32] = {4, "I32"},
};

size_t dt_dtype_bytes(dt_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *dt_dtype_name(dt_dtype dtype)
{
    return dtypes[dtype].name;
}
