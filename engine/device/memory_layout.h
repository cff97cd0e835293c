/* memory_layout: counts or allocates memory, with the same function for both.
 *
 * Purpose    a strategy or a pass describes its memory once. Without an arena the function only
 *            counts, with one it allocates, so that the size that is reported, the size that is
 *            allocated and the size that is used cannot differ
 * Ownership  the caller owns the arena
 */
#ifndef DT_ENGINE_DEVICE_MEMORY_LAYOUT_H
#define DT_ENGINE_DEVICE_MEMORY_LAYOUT_H

#include "engine/device/device.h"

typedef struct dt_layout {
    dt_device_arena *arena; /* where to allocate; NULL: count only */
    size_t bytes;           /* bytes taken so far */
} dt_layout;

/* Take `bytes` bytes. Returns NULL while counting. */
void *dt_layout_take(dt_layout *layout, size_t bytes);

/* Free everything taken since `bytes` bytes were in use, so that it is used again. */
void dt_layout_go_back(dt_layout *layout, size_t bytes);

/* Count what `lay_out` takes, open *arena with that size, and run `lay_out` on it. */
dt_status dt_layout_open(dt_device_arena *arena, dt_device *device,
                         void (*lay_out)(void *self, dt_layout *layout), void *self, dt_error *err);

#endif
