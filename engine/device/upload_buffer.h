/* feed: a piece of device memory that the host fills anew, step after step, without waiting for the
 * ops: by one copy out of pinned memory, ordered with the ops.
 *
 * Use        dt_feed_begin, write `host`, dt_feed_send; the ops that follow find it in `data`
 * Ownership  borrows the device; `host` is the caller's between begin and send
 * Threads    the one that drives the device's ops
 * Errors     of queue.h
 */
#ifndef DT_ENGINE_DEVICE_UPLOAD_BUFFER_H
#define DT_ENGINE_DEVICE_UPLOAD_BUFFER_H

#include "engine/device/device.h"

typedef struct dt_feed {
    dt_device *device;
    void *data; /* in the device's memory */
    void *host;
    size_t bytes;
    struct dt_mark *taken; /* host has been read */
} dt_feed;

dt_status dt_feed_open(dt_feed *out, dt_device *device, size_t bytes, dt_error *err);
void dt_feed_close(dt_feed *feed); /* accepts a zeroed or half-open one */

/* Waits until what was sent last has left `host`, which by the next step it has. */
dt_status dt_feed_begin(dt_feed *feed, dt_error *err);
dt_status dt_feed_send(dt_feed *feed, dt_error *err);

#endif
