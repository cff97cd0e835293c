#include "engine/device/memory_layout.h"

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
