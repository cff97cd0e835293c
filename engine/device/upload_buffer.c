#include "engine/device/upload_buffer.h"

#include <string.h>

#include "engine/device/queue.h"

dt_status dt_upload_buffer_open(dt_upload_buffer *out, dt_device *device, size_t bytes,
                                dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->device = device;
    out->bytes = bytes;
    DT_TRY(device->alloc(device, &out->data, bytes, err));
    DT_TRY(device->host_alloc(device, &out->host, bytes, err));
    DT_TRY(device->queues->event_open(device, &out->taken, err));
out:
    return st;
}

void dt_upload_buffer_close(dt_upload_buffer *upload)
{
    dt_device *device = upload->device;

    if (device == NULL)
        return;
    device->queues->event_close(device, upload->taken);
    if (upload->host != NULL)
        device->host_free(device, upload->host);
    if (upload->data != NULL)
        device->free(device, upload->data);
    memset(upload, 0, sizeof(*upload));
}

dt_status dt_upload_buffer_begin(dt_upload_buffer *upload, dt_error *err)
{
    return upload->device->queues->wait(upload->device, upload->taken, err);
}

dt_status dt_upload_buffer_send(dt_upload_buffer *upload, dt_error *err)
{
    const dt_queues *queues = upload->device->queues;
    dt_status st = DT_OK;

    DT_TRY(queues->copy_in(upload->device, NULL, upload->data, upload->host, upload->bytes, err));
    DT_TRY(queues->record(upload->device, upload->taken, NULL, err));
out:
    return st;
}
