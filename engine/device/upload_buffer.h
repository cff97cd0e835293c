/* upload_buffer: uploads values to the device every step, without waiting for the ops: by one copy
 * from pinned memory, ordered with the ops.
 *
 * Use        dt_upload_buffer_begin, write `host`, dt_upload_buffer_send; later ops see the values
 *            in `data`
 * Ownership  borrows the device; the caller may write `host` between begin and send
 * Threads    the one that drives the device's ops
 * Errors     those of queue.h
 */
#ifndef DT_ENGINE_DEVICE_UPLOAD_BUFFER_H
#define DT_ENGINE_DEVICE_UPLOAD_BUFFER_H

#include "engine/device/device.h"

typedef struct dt_upload_buffer {
    dt_device *device;
    void *data; /* the copy in device memory */
    void *host;
    size_t bytes;
    struct dt_device_event *taken; /* reached when `host` has been read */
} dt_upload_buffer;

dt_status dt_upload_buffer_open(dt_upload_buffer *out, dt_device *device, size_t bytes,
                                dt_error *err);
/* accepts a zeroed or partly opened buffer */
void dt_upload_buffer_close(dt_upload_buffer *upload);

/* Wait until the previous send has read `host`; it usually has by the next step. */
dt_status dt_upload_buffer_begin(dt_upload_buffer *upload, dt_error *err);
dt_status dt_upload_buffer_send(dt_upload_buffer *upload, dt_error *err);

#endif
