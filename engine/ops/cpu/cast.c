/* cast: out := x in out's type; zero: x := 0. */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

dt_status DT_CPU_NAME(cast)(dt_device *device, dt_tensor *out, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    size_t elem_bytes = dt_dtype_bytes(x->dtype);
    bool same = out->dtype == x->dtype;

    DT_ASSERT(dt_tensor_elems(out) == elems);
    if (same && out->data == x->data)
        goto out;
    if (!same) {
        DT_TRY(dt_row_check(x, "cast", err));
        DT_TRY(dt_row_check(out, "cast", err));
    }
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        int64_t n = share.end - share.begin;

        if (same)
            memcpy((char *)out->data + (size_t)share.begin * elem_bytes,
                   (const char *)x->data + (size_t)share.begin * elem_bytes,
                   (size_t)n * elem_bytes);
        else if (x->dtype == DT_F32)
            dt_row_narrow((uint16_t *)out->data + share.begin, (const float *)x->data + share.begin,
                          n);
        else
            dt_row_widen((float *)out->data + share.begin, (const uint16_t *)x->data + share.begin,
                         n);
    }
out:
    return st;
}

dt_status DT_CPU_NAME(zero)(dt_device *device, dt_tensor *x, dt_error *err)
{
    int64_t elems = dt_tensor_elems(x);
    size_t elem_bytes = dt_dtype_bytes(x->dtype);

#pragma omp parallel num_threads(dt_cpu_threads(device, elems / 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);

        memset((char *)x->data + (size_t)share.begin * elem_bytes, 0,
               (size_t)(share.end - share.begin) * elem_bytes);
    }
    return DT_OK;
}
