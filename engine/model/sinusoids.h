/* sinusoids: computes fixed sinusoidal positions (Vaswani et al. 2017) as in fairseq.
 *
 * Ownership  the caller owns the table
 */
#ifndef DT_ENGINE_MODEL_SINUSOIDS_H
#define DT_ENGINE_MODEL_SINUSOIDS_H

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row: sin(pos f_0) .. sin(pos f_{h-1}), cos(pos f_0) .. cos(pos f_{h-1}), then a zero if
 * `embed` is odd; h = embed / 2 (at least 2), f_i = 10000^(-i/(h-1)). */
void dt_sinusoids_row(float *out, int64_t position, int64_t embed);
/* Fill table (positions,embed), of any type, starting at position `first`; waits for the device. */
dt_status dt_sinusoids_fill(dt_device *device, dt_tensor *table, int64_t first, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
