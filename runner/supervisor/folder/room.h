/* room: checks whether the state folder has room for what the end of a run writes. */
#ifndef DT_FOLDER_ROOM_H
#define DT_FOLDER_ROOM_H

#include "base/arena.h"
#include "base/error.h"

/* Writes a file of that size and removes it. DT_ERR_IO: the disk is full, or the folder cannot
 * be written. */
dt_status dt_run_check_room(dt_arena *arena, dt_error *err);

#endif
