/* machine_speed: measures the speed and memory of this machine at the start of a run.
 *
 * Units  floating point operations per second; bytes
 */
#ifndef DT_ENGINE_TRAIN_MACHINE_SPEED_H
#define DT_ENGINE_TRAIN_MACHINE_SPEED_H

#include "engine/model/model.h"

/* Measure the FLOP rate of the model's largest kind of matrix product in its compute type, the
 * reference for the reported utilization. Takes the fastest call within about a tenth of a second,
 * or on an asynchronous device the fastest series of calls. */
dt_status dt_measure_matmul(double *flops_per_second, const dt_model *model, dt_error *err);

/* Free memory of the device; 0 if unknown. */
int64_t dt_measure_free_memory(dt_device *device);

/* Peak resident memory of this process on the host, including shared memory and file pages; 0 if
 * unknown. */
int64_t dt_measure_peak_memory(void);

#endif
