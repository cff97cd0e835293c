/* stop_mark: a person ended an attempt together with its supervisor (`dtrun stop --now` where nothing can be
 * written), so that who supervises the run next, once there is room, does not take up what was stopped.
 *
 * It is written over bytes that the supervisor puts into supervisor.lock when it takes that lock, which needs no
 * room on a full disk. Holds for the attempt that it names and those before it, until the run has ended.
 *
 * Threads  whoever holds supervisor.lock
 */
#ifndef DT_FOLDER_STOP_MARK_H
#define DT_FOLDER_STOP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Makes the place where there is none yet; a mark that is there stays. */
dt_status dt_stop_mark_reserve(int lock, dt_error *err);
/* In the place that there is, on the disk when it returns. DT_ERR_IO: there is none, and no room for one. */
dt_status dt_stop_mark_set(int lock, int64_t attempt, dt_error *err);
dt_status dt_stop_mark_clear(int lock, dt_error *err);
/* folder: runs/ID. */
bool dt_stop_mark_covers(const char *folder, int64_t attempt);

#endif
