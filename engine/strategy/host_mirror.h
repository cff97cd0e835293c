/* host_mirror: gives the host access to tensors that are in device memory.
 *
 * Purpose    the only place that knows whether the host can read a device's memory. On the CPU a
 *            piece is the memory itself and nothing is copied; on a GPU it is a copy in host memory
 * Ownership  owns the copies; borrows device and device memory
 * Threads    the device's
 */
#ifndef DT_ENGINE_STRATEGY_HOST_MIRROR_H
#define DT_ENGINE_STRATEGY_HOST_MIRROR_H

#include "engine/device/device.h"

typedef struct dt_host_mirror {
    dt_device *device;
    struct dt_host_mirror_piece *pieces;
    int count, capacity;
} dt_host_mirror;

/* Open a mirror of at most `capacity` pieces. */
dt_status dt_host_mirror_open(dt_host_mirror *out, dt_device *device, int capacity, dt_error *err);
/* *host: host address of `elems` floats of device memory; NULL if device_memory is NULL. */
dt_status dt_host_mirror_add(dt_host_mirror *mirror, float **host, float *device_memory,
                             int64_t elems, dt_error *err);
/* Copy all pieces from or to the device; complete on return. */
dt_status dt_host_mirror_from_device(dt_host_mirror *mirror, dt_error *err);
dt_status dt_host_mirror_to_device(dt_host_mirror *mirror, dt_error *err);
void dt_host_mirror_close(dt_host_mirror *mirror); /* accepts a zeroed mirror */

#endif
