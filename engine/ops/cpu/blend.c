/* blend: y = a*x + b*y. */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

dt_status DT_CPU_NAME(blend)(dt_device *device, dt_tensor *y, const dt_tensor *x, double a,
                             double b, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    float of_x = (float)a, of_y = (float)b;
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "blend", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *in = dt_row_read(x, i, n, mine);
            const float *before = dt_row_read(y, i, n, mine + DT_ROW_CHUNK);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);

#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                out[l] = of_x * in[l] + of_y * before[l];
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}
