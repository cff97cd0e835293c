/* squared_error: computes the loss of each row of outputs; backward replaces the outputs by their gradient.
 *
 * Formula    loss = sum_o (y_o - t_o)^2,   dy_o = 2 (y_o - t_o) scale; both 0 if t_o is NaN.
 *            A row is summed in double
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#define WORK 2 /* cost of an element, relative to one addition */

static float row_loss(const float *y, const float *target, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++) {
        double off = isnan(target[i]) ? 0.0 : (double)y[i] - (double)target[i];

        sum += off * off;
    }
    return (float)sum;
}

static void row_gradient(float *dy, const float *y, const float *target, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        dy[i] = isnan(target[i]) ? 0.0f : (y[i] - target[i]) * factor;
}

static dt_status check(const dt_tensor *losses, const dt_tensor *y, const dt_tensor *targets,
                       dt_error *err)
{
    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_F32 &&
              dt_tensor_elems(losses) == dt_tensor_rows(y) &&
              dt_tensor_elems(targets) == dt_tensor_elems(y));
    return dt_row_check(y, "squared error", err);
}

/* Computes the losses of all rows; unless `factor` is NULL, also replaces y by its gradient. */
static dt_status each_row(dt_device *device, dt_tensor *losses, dt_tensor *y,
                          const dt_tensor *targets, const float *factor, dt_error *err)
{
    int64_t n = dt_tensor_rows(y), width = dt_tensor_cols(y);
    const float *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_TRY(check(losses, y, targets, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, width, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *width *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *row = dt_row_read(y, i * width, width, mine);

            loss[i] = row_loss(row, target + i * width, width);
            if (factor != NULL) {
                float *out = dt_row_open(y, i * width, mine);

                row_gradient(out, row, target + i * width, width, *factor);
                dt_row_close(y, i * width, width, out);
            }
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(squared_error_forward)(dt_device *device, dt_tensor *losses,
                                             const dt_tensor *y, const dt_tensor *targets,
                                             dt_error *err)
{
    dt_tensor read = *y;

    return each_row(device, losses, &read, targets, NULL, err);
}

dt_status DT_CPU_NAME(squared_error_backward)(dt_device *device, dt_tensor *losses, dt_tensor *y,
                                              const dt_tensor *targets, const double *scale,
                                              dt_error *err)
{
    float factor = (float)(2.0 * *scale);

    return each_row(device, losses, y, targets, &factor, err);
}
