/* stop_mark: records in supervisor.lock that a person requested a stop, or ended an attempt together with its
 * supervisor (`dtrun stop --now` if nothing else can be written). The next supervisor reads the mark first, and
 * does not continue a run that was to be stopped.
 *
 * The mark overwrites bytes that the supervisor reserves when it takes the lock, so it needs no space on a full
 * disk. It applies to the attempt that it names and earlier ones, until the run has ended.
 *
 * Threads  the holder of supervisor.lock; dt_stop_mark_ask: any process
 */
#ifndef DT_FOLDER_STOP_MARK_H
#define DT_FOLDER_STOP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Reserves room for the mark if there is none; an existing mark is kept. */
dt_status dt_stop_mark_reserve(int lock, dt_error *err);
/* Writes the mark into the reserved room, and syncs it. DT_ERR_IO: nothing is reserved, and the
 * disk is full. */
dt_status dt_stop_mark_set(int lock, int64_t attempt, dt_error *err);
dt_status dt_stop_mark_clear(int lock, dt_error *err);
/* Records a stop request before it is sent, whether there is a supervisor or not; in the
 * reserved room, else in a new one. A mark of dt_stop_mark_set is kept. folder: runs/ID, also
 * below. */
dt_status dt_stop_mark_ask(const char *folder, int64_t attempt, bool now, dt_error *err);

typedef enum dt_stop_mark {
    DT_STOP_MARK_NONE,
    DT_STOP_MARK_ASKED,     /* stop with a grace period */
    DT_STOP_MARK_ASKED_NOW, /* stop at once */
    DT_STOP_MARK_STOPPED,   /* its processes and its supervisor were killed */
} dt_stop_mark;
dt_stop_mark dt_stop_mark_read(const char *folder, int64_t attempt);
/* True if the mark is DT_STOP_MARK_STOPPED. */
bool dt_stop_mark_covers(const char *folder, int64_t attempt);

#endif
