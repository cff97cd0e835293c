/* upload_buffer: a piece of device memory that the host fills anew, step after step, without
 * waiting for the ops: by one copy out of pinned memory, ordered with the ops.
 *
 * Use        dt_upload_buffer_begin, write `host`, dt_upload_buffer_send; the ops that follow find
 *            it in `data`
 * Ownership  borrows the device; `host` is the caller's between begin and send
 * Threads    the one that drives the device's ops
 * Errors     of queue.h
 */
#ifndef DT_ENGINE_DEVICE_UPLOAD_BUFFER_H
#define DT_ENGINE_DEVICE_UPLOAD_BUFFER_H

#include "engine/device/device.h"

typedef struct dt_upload_buffer {
    dt_device *device;
    void *data; /* in the device's memory */
    void *host;
    size_t bytes;
    struct dt_device_event *taken; /* host has been read */
} dt_upload_buffer;

dt_status dt_upload_buffer_open(dt_upload_buffer *out, dt_device *device, size_t bytes,
                                dt_error *err);
void dt_upload_buffer_close(dt_upload_buffer *upload); /* accepts a zeroed or half-open one */

/* Waits until what was sent last has left `host`, which by the next step it has. */
dt_status dt_upload_buffer_begin(dt_upload_buffer *upload, dt_error *err);
dt_status dt_upload_buffer_send(dt_upload_buffer *upload, dt_error *err);

#endif
