/* resume: resumes the unfinished points of a sweep that has ended. */
#ifndef DT_SWEEP_RESUME_H
#define DT_SWEEP_RESUME_H

#include "runner/cli/command.h"
#include "runner/sweep/group.h"

/* Resumes points that failed or were stopped by a person from their checkpoints, and launches
 * points that were refused or never started; points that finished, were stopped early or were
 * removed are unchanged. Starts a driver if there is something to do; *count: number of such
 * points. DT_ERR_USAGE while a driver runs. */
dt_status dt_group_resume(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err);

#endif
