/* device: what is the same for every backend. */
#include "engine/device/device.h"

#include <string.h>

#include "engine/device/queue.h"

/* --- memory of a device */

void dt_device_close(dt_device *device)
{
    if (device->close != NULL)
        device->close(device);
    memset(device, 0, sizeof *device);
}

#define ARENA_ALIGN ((size_t)64)

dt_status dt_device_arena_open(dt_device_arena *out, dt_device *device, size_t capacity_bytes,
                               dt_error *err)
{
    dt_status st = DT_OK;
    void *base = NULL;

    memset(out, 0, sizeof *out);
    DT_TRY(device->alloc(device, &base, capacity_bytes, err));
    out->device = device;
    out->base = base;
    out->capacity_bytes = capacity_bytes;
out:
    return st;
}

void *dt_device_arena_take(dt_device_arena *arena, size_t bytes)
{
    void *memory = arena->base + arena->used_bytes;

    DT_ASSERT(bytes <= arena->capacity_bytes - arena->used_bytes);
    arena->used_bytes += (bytes + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (arena->used_bytes >
        arena->capacity_bytes) /* the last piece need not be a multiple of the alignment */
        arena->used_bytes = arena->capacity_bytes;
    return memory;
}

void dt_device_arena_close(dt_device_arena *arena)
{
    if (arena->base != NULL)
        arena->device->free(arena->device, arena->base);
    memset(arena, 0, sizeof *arena);
}

/* --- counted or allocated */

void *dt_layout_take(dt_layout *layout, size_t bytes)
{
    layout->bytes += (bytes + 63) / 64 * 64; /* round up like the arena does */
    return layout->arena != NULL ? dt_device_arena_take(layout->arena, bytes) : NULL;
}

void dt_layout_go_back(dt_layout *layout, size_t bytes)
{
    layout->bytes = bytes;
    if (layout->arena != NULL)
        layout->arena->used_bytes = bytes;
}

dt_status dt_layout_open(dt_device_arena *arena, dt_device *device,
                         void (*lay_out)(void *self, dt_layout *layout), void *self, dt_error *err)
{
    dt_layout layout = {0};
    dt_status st = DT_OK;

    lay_out(self, &layout);
    st = dt_device_arena_open(arena, device, layout.bytes, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "parameters, gradients and optimizer state");
        goto out;
    }
    layout = (dt_layout){.arena = arena};
    lay_out(self, &layout);
out:
    return st;
}

/* --- uploads of every step */

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
