/* backend: the device whose ops are tested. One file of backend_*.c is linked with the harness. */
#ifndef DT_TESTS_OPS_BACKEND_H
#define DT_TESTS_OPS_BACKEND_H

#include <stdbool.h>

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DT_ERR_UNSUPPORTED if this machine has no such device: the tests are then skipped. */
dt_status bench_backend_open(dt_device *out, int threads, dt_error *err);

/* Whether each tensor ends where a page ends, before a page that nothing can access: an op that reads or writes past
 * the end crashes, whatever instruction it uses. Tensors are then aligned to their elements only. */
extern const bool bench_backend_guards;

/* Returns memory that both the host and the device read and write, aligned to a page, or to 64
 * without guards; NULL if there is none. Freed before the device is closed. */
void *bench_backend_memory(dt_device *device, size_t bytes);
void bench_backend_memory_free(dt_device *device, void *memory);

#ifdef __cplusplus
}
#endif
#endif
