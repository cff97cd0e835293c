/* blend: computes y = a*x + b*y. */
#include "engine/ops/cpu/shares_int.h"

dt_status DT_CPU_NAME(blend)(dt_device *device, dt_tensor *y, const dt_tensor *x, double a,
                             double b, dt_error *err)
{
    return dt_add_shares(device, y, x, (float)a, y, (float)b, "blend", err);
}
