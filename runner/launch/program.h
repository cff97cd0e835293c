/* program: starts the next attempt of an ended run of a command, with the same command or as --set changes it. */
#ifndef DT_RUNNER_LAUNCH_PROGRAM_H
#define DT_RUNNER_LAUNCH_PROGRAM_H

#include "runner/cli/command.h"
#include "store/store.h"

/* DT_ERR_USAGE: the run is finished, or an option is for runs that train. */
dt_status dt_program_resume(dt_store *store, dt_run *run, const dt_call *call, dt_error *err);

#endif
