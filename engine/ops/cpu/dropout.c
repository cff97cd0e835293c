/* dropout: keeps an element with probability 1-p and scales it by 1/(1-p).
 *
 * Forward and backward are the same function with the same key (dropout_int.h): no mask is stored
 * between them.
 */
#include "engine/ops/cpu/dropout_int.h"
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#define WORK 8 /* cost of an element, relative to one addition */

static dt_status drop(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                      const dt_philox_key *key, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    dt_dropout dropout = dt_dropout_of(p, key);
    dt_cpu_scratch scratch;

    DT_TRY(dt_row_check(x, "dropout", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * DT_ROW_CHUNK + dt_dropout_floats(DT_ROW_CHUNK),
                               err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *in = dt_row_read(x, i, n, mine);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);
            const float *uniforms = dt_dropout_draw(&dropout, i, n, mine + 2 * DT_ROW_CHUNK);

#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                out[l] = uniforms[l] >= dropout.threshold ? in[l] * dropout.scale : 0.0f;
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(dropout_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                       double p, const dt_philox_key *key, dt_error *err)
{
    return p > 0.0 ? drop(device, y, x, p, key, err) : DT_CPU_NAME(cast)(device, y, x, err);
}

dt_status DT_CPU_NAME(dropout_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        double p, const dt_philox_key *key, dt_error *err)
{
    return DT_CPU_NAME(dropout_forward)(device, dx, dy, p, key, err);
}
