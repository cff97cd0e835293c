#include "engine/device/device.h"

#include <string.h>

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
