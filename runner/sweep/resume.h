/* resume: what of a sweep that has ended did not finish continues. */
#ifndef DT_SWEEP_RESUME_H
#define DT_SWEEP_RESUME_H

#include "runner/cli/command.h"
#include "runner/sweep/group.h"

/* Points that were stopped by a person or failed continue from their checkpoints, those that were refused or never
 * begun are launched; what finished, was cut as one of the worse, or was removed stays as it is. Starts a
 * driver where there is something to do; *count: for how many. DT_ERR_USAGE while it is driven. */
dt_status dt_group_resume(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err);

#endif
