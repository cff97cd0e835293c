/* sinusoids: fixed positions (Vaswani et al. 2017), as fairseq has them.
 *
 * Ownership  the table is the caller's
 */
#ifndef DT_ENGINE_MODEL_SINUSOIDS_H
#define DT_ENGINE_MODEL_SINUSOIDS_H

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row: sin(pos f_0) .. sin(pos f_{h-1}), cos(pos f_0) .. cos(pos f_{h-1}), and a zero where
 * `embed` is odd; h = embed / 2 (2 or more), f_i = 10000^(-i/(h-1)). */
void dt_sinusoids_row(float *out, int64_t position, int64_t embed);
/* Fills table (positions,embed), of any type, from position `first` on; the device is waited for. */
dt_status dt_sinusoids_fill(dt_device *device, dt_tensor *table, int64_t first, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
