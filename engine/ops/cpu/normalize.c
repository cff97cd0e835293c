/* normalize: computes out = x / max(|x|, eps). The norm is computed as in sum_squares, so it does
 * not depend on the thread count. */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

dt_status DT_CPU_NAME(normalize)(dt_device *device, dt_tensor *out, const dt_tensor *x, double eps,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    const float *in = x->data;
    dt_cpu_scratch scratch;
    double squares;
    float factor;

    DT_ASSERT(x->dtype == DT_F32 && dt_tensor_elems(out) == elems);
    DT_TRY(dt_row_check(out, "normalize", err));
    DT_TRY(DT_CPU_NAME(sum_squares)(device, &squares, x, err));
    factor = (float)(1.0 / fmax(sqrt(squares), eps));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *row = dt_row_open(out, i, mine);

#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                row[l] = factor * in[i + l];
            dt_row_close(out, i, n, row);
        }
    }
out:
    return st;
}
