/* run_id: short names that nobody misreads.
 *
 * Six of the 31 characters a-z and 2-9 without i, l and o (taken for 1 and 0): 887 million, drawn
 * from the system's randomness. One is taken by making its folder, which can be done once.
 */
#ifndef DT_RUNNER_LAUNCH_RUN_ID_H
#define DT_RUNNER_LAUNCH_RUN_ID_H

#include "base/arena.h"
#include "base/error.h"

#define DT_RUN_ID_SIZE 7

/* A new id and its folder runs/ID, which is the caller's to remove where nothing comes of it; texts live in the
 * arena. *folder NULL after an error: nothing was made. */
dt_status dt_run_id_take(const char **run, const char **folder, dt_arena *arena, dt_error *err);

#endif
