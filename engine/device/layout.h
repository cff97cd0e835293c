/* layout: memory that is counted and handed out by one function.
 *
 * Purpose    a strategy, or a pass, says once what it keeps; run without an arena the function
 *            counts, with one it hands out, so that the size that is reported, the size that is
 *            taken and the size that is used cannot differ
 * Ownership  the arena is the caller's
 */
#ifndef DT_ENGINE_DEVICE_LAYOUT_H
#define DT_ENGINE_DEVICE_LAYOUT_H

#include "engine/device/device.h"

typedef struct dt_layout {
    dt_device_arena *arena; /* NULL: count only */
    size_t bytes;           /* so far */
} dt_layout;

/* NULL while counting. */
void *dt_layout_take(dt_layout *layout, size_t bytes);

/* What follows lies over what has been taken since there were so many bytes. */
void dt_layout_go_back(dt_layout *layout, size_t bytes);

/* Opens *arena for what `lay_out` takes, and has it taken. */
dt_status dt_layout_open(dt_device_arena *arena, dt_device *device,
                         void (*lay_out)(void *self, dt_layout *layout), void *self, dt_error *err);

#endif
