/* stop_mark: a person asked for a stop, or ended an attempt together with its supervisor (`dtrun stop --now` where nothing
 * can be written). Who supervises the run next reads the mark first, and does not continue what was to be stopped.
 *
 * It is written over bytes that the supervisor puts into supervisor.lock when it takes that lock, which needs no
 * room on a full disk. Holds for the attempt that it names and those before it, until the run has ended.
 *
 * Threads  whoever holds supervisor.lock; dt_stop_mark_ask any process
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
/* Before the stop is asked for: with the supervisor there or not, in the place that there is, else in a new one. A mark
 * that dt_stop_mark_set left stays. folder: runs/ID, as below. */
dt_status dt_stop_mark_ask(const char *folder, int64_t attempt, bool now, dt_error *err);

typedef enum dt_stop_mark {
    DT_STOP_MARK_NONE,
    DT_STOP_MARK_ASKED,     /* to save and end */
    DT_STOP_MARK_ASKED_NOW, /* to end at once */
    DT_STOP_MARK_STOPPED,   /* its processes were ended, its supervisor too */
} dt_stop_mark;
dt_stop_mark dt_stop_mark_read(const char *folder, int64_t attempt);
/* Whether it is DT_STOP_MARK_STOPPED. */
bool dt_stop_mark_covers(const char *folder, int64_t attempt);

#endif
