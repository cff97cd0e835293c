/* sweep: launches, drives, resumes, stops and prints sweeps. */
#ifndef DT_RUNNER_SWEEP_SWEEP_H
#define DT_RUNNER_SWEEP_SWEEP_H

#include "base/json.h"
#include "recipes/read/reader.h"
#include "runner/cli/command.h"
#include "runner/queue/queue.h"
#include "runner/sweep/group.h"
#include "runner/term/term.h"
#include "store/run.h"

/* drive: runs a sweep through its points, in a detached process like a supervisor.
 *
 * One driver per group, by driver.lock. It launches each point with `dtrun launch --detach`, so a point is an
 * ordinary run; reads the history twice a second; and ends with the last point. Its state is in the folder and the
 * history, so any command that looks at runs can restart a driver that was killed.
 */

#define DT_DRIVE_STARTS "driver.starts"

/* Runs `dtrun drive GROUP`. DT_ERR_BUSY if another driver runs. */
dt_status dt_drive_main(const char *name, dt_error *err);

/* Starts a driver for a group that has not ended and has none. DT_ERR_IO if its drivers end at
 * once, so that no more are started (channel/detach.h); other failures may be temporary and are
 * ignored. */
dt_status dt_drive_ensure(const char *name, dt_error *err);
/* The same for every group that has not ended, with its saved environment. */
void dt_drive_ensure_all(void);

/* launch: creates a group from a recipe with a sweep, and starts its driver. */

/* Reads and checks all points before anything is created; with wish->queues they wait in the queue. source->sweep gives their number;
 * *name lives in the arena. */
dt_status dt_sweep_launch(const char **name, const dt_recipe_source *source,
                          const dt_labels *labels, const dt_queue_wish *wish, dt_call *call,
                          dt_error *err);

/* resume: resumes the unfinished points of a sweep that has ended. */

/* Resumes points that failed or were stopped by a person from their checkpoints, and launches
 * points that were refused or never started; points that finished, were stopped early or were
 * removed are unchanged. Starts a driver if there is something to do; *count: number of such
 * points. DT_ERR_USAGE while a driver runs. */
dt_status dt_group_resume(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err);

/* report: prints a sweep: a line per point, or JSON
 *   {"version": 1, "group", "ended", "points": [{"name", "values", "state", "run", "step", "loss",
 *    "valid_loss", "cut", "problem"}]}
 * where a point's state is that of its run, "waiting", "refused" (it could not be launched), "removed", or "cut"
 * (stopped early).
 */

/* Returns true if `ref` is a sweep: a running one takes precedence over a run of that name, an
 * ended one does not. If it could be both, a note says which was chosen. */
bool dt_group_is_meant(dt_sweep_group *out, const char *ref, dt_call *call);

/* Requests a stop, and waits until none of its runs is left. Ctrl-C stops waiting: 130. */
dt_status dt_group_stop(const dt_sweep_group *group, bool now, dt_call *call, dt_error *err);

/* Prints it as a table or an object, and sets the exit code if the group has ended: 1 if a point
 * failed, 4 if one was stopped by a person. */
dt_status dt_group_print(const dt_sweep_group *group, dt_store *store, dt_call *call,
                         dt_error *err);

/* Prints each change until all points have ended, then the table. Ctrl-C detaches: 130. */
dt_status dt_group_follow(const char *name, dt_call *call, dt_error *err);

#endif
