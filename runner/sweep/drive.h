/* drive: runs a sweep through its points, in a detached process like a supervisor.
 *
 * One driver per group, by driver.lock. It launches each point with `dtrun launch --detach`, so a point is an
 * ordinary run; reads the history twice a second; and ends with the last point. Its state is in the folder and the
 * history, so any command that looks at runs can restart a driver that was killed.
 */
#ifndef DT_SWEEP_DRIVE_H
#define DT_SWEEP_DRIVE_H

#include "runner/sweep/group.h"

#define DT_DRIVE_STARTS "driver.starts"

/* Runs `dtrun drive GROUP`. DT_ERR_BUSY if another driver runs. */
dt_status dt_drive_main(const char *name, dt_error *err);

/* Starts a driver, detached, with the environment of this process, which is saved. */
dt_status dt_drive_start(const dt_sweep_group *group, const char *text, dt_error *err);
/* Starts a driver for a group that has not ended and has none. DT_ERR_IO if its drivers end at
 * once, so that no more are started (channel/starts.h); other failures may be temporary and are
 * ignored. */
dt_status dt_drive_ensure(const char *name, dt_error *err);
/* The same for every group that has not ended, with its saved environment. */
void dt_drive_ensure_all(void);

#endif
