/* backend: whose ops are driven. One file of backend_*.c is linked with the harness. */
#ifndef DT_TESTS_OPS_BACKEND_H
#define DT_TESTS_OPS_BACKEND_H

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DT_ERR_UNSUPPORTED where this machine has no such device: the tests are then skipped. */
dt_status bench_backend_open(dt_device *out, int threads, dt_error *err);

/* Memory that both the host and the device read and write; aligned to 64; NULL where there is none.
 * Freed before the device is closed. */
void *bench_backend_memory(dt_device *device, size_t bytes);
void bench_backend_memory_free(dt_device *device, void *memory);

#ifdef __cplusplus
}
#endif
#endif
