/* run_id: generates short run ids that are easy to read.
 *
 * Six of the 31 characters a-z and 2-9 without i, l and o (taken for 1 and 0): 887 million ids, from the
 * system's random numbers. Creating its folder claims an id, which only one process can do.
 */
#ifndef DT_RUNNER_LAUNCH_RUN_ID_H
#define DT_RUNNER_LAUNCH_RUN_ID_H

#include "base/arena.h"
#include "base/error.h"

#define DT_RUN_ID_SIZE 7

/* Claims a new id and creates its folder runs/ID, which the caller removes if the launch fails;
 * texts live in the arena. *folder is NULL after an error: nothing was created. */
dt_status dt_run_id_take(const char **run, const char **folder, dt_arena *arena, dt_error *err);

#endif
