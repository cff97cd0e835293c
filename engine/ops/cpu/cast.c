/* cast: out := x in out's type; zero: x := 0. */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

dt_status DT_CPU_NAME(cast)(dt_device *device, dt_tensor *out, const dt_tensor *x, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    size_t elem_bytes = dt_dtype_bytes(x->dtype);
    bool same = out->dtype == x->dtype;
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_elems(out) == elems);
    if (same && out->data == x->data)
        goto out;
    if (!same) {
        DT_TRY(dt_row_check(x, "cast", err));
        DT_TRY(dt_row_check(out, "cast", err));
    }
    DT_TRY(dt_cpu_scratch_take(&scratch, device, DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        if (same)
            memcpy((char *)out->data + (size_t)share.begin * elem_bytes,
                   (const char *)x->data + (size_t)share.begin * elem_bytes,
                   (size_t)(share.end - share.begin) * elem_bytes);
        for (int64_t i = share.begin; i < share.end && !same; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);

            /* no copy in between: widening writes into out, narrowing reads x in place; only a cast
             * between two 16-bit types uses the scratch */
            dt_row_close(out, i, n, dt_row_read(x, i, n, dt_row_open(out, i, mine)));
        }
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
