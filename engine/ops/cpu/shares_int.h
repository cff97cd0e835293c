/* shares_int: implements the loop of residual.c and blend.c. Factors of exactly 1 give the same
 * bits as no multiplication. */
#ifndef DT_ENGINE_OPS_CPU_SHARES_INT_H
#define DT_ENGINE_OPS_CPU_SHARES_INT_H

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

/* y = of_left*left + of_right*right; y may be left or right. */
static inline dt_status dt_add_shares(dt_device *device, dt_tensor *y, const dt_tensor *left,
                                      float of_left, const dt_tensor *right, float of_right,
                                      const char *op, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(left);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(left, op, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *l = dt_row_read(left, i, n, mine);
            const float *r = dt_row_read(right, i, n, mine + DT_ROW_CHUNK);
            float *out = dt_row_open(y, i, mine + 2 * DT_ROW_CHUNK);

#pragma omp simd
            for (int64_t k = 0; k < n; k++)
                out[k] = of_left * l[k] + of_right * r[k];
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

#endif
