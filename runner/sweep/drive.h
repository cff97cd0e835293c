/* drive: the process that takes a sweep through its points, as a supervisor does a run.
 *
 * One a group, by driver.lock, detached; it launches each point with `dtrun launch --detach`, so that a
 * point is a run as any other, looks at the history twice a second, and ends with the last of them. What
 * it has done it finds in the folder and the history, so that any command that looks at runs may start
 * another where it was killed.
 */
#ifndef DT_SWEEP_DRIVE_H
#define DT_SWEEP_DRIVE_H

#include "runner/sweep/group.h"

#define DT_DRIVE_STARTS "driver.starts" /* in the group's folder (channel/starts.h) */

/* The main of `dtrun drive GROUP`. DT_ERR_BUSY where another one drives. */
dt_status dt_drive_main(const char *name, dt_error *err);

/* Starts one, detached, with the environment of this process, which is kept. */
dt_status dt_drive_start(const dt_sweep_group *group, const char *text, dt_error *err);
/* For a group that has not ended, if nobody drives it. DT_ERR_IO if its drivers end at once, so that none is started any
 * more (channel/starts.h); what else fails may go better the next time, and is no error. */
dt_status dt_drive_ensure(const char *name, dt_error *err);
/* For every group that has not ended and that nobody drives, with the environment that was kept. */
void dt_drive_ensure_all(void);

#endif
