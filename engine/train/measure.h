/* measure: what this machine can do, found out at the start of a run.
 *
 * Units  floating point operations per second; bytes
 */
#ifndef DT_ENGINE_TRAIN_MEASURE_H
#define DT_ENGINE_TRAIN_MEASURE_H

#include "engine/model/model.h"

/* The rate of the model's own largest kind of product, in its compute type: what its FLOP rate is
 * a share of; of the fastest call in about a tenth of a second, or of the fastest train
 * of calls where the device works beside the host. */
dt_status dt_measure_matmul(double *flops_per_second, const dt_model *model, dt_error *err);

/* Memory of the device that nobody holds; 0 where it does not say. */
int64_t dt_measure_free_memory(dt_device *device);

/* The most of the host's memory that this process has held at once, with what it shares with others and
 * pages of files; 0 where the system does not say. */
int64_t dt_measure_peak_memory(void);

#endif
