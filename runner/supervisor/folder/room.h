/* room: whether the state folder takes what the end of a run writes. */
#ifndef DT_FOLDER_ROOM_H
#define DT_FOLDER_ROOM_H

#include "base/arena.h"
#include "base/error.h"

/* Writes as much, and removes it. DT_ERR_IO: it is full, or cannot be written. */
dt_status dt_run_check_room(dt_arena *arena, dt_error *err);

#endif
