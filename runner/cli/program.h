/* program: finds the programs that are installed next to dtrun. */
#ifndef DT_RUNNER_PROGRAM_H
#define DT_RUNNER_PROGRAM_H

#include "base/arena.h"
#include "base/error.h"

/* Path of dtrun-agent, or DTRUN_AGENT. DT_ERR_IO if it cannot be run: the installation is broken. */
dt_status dt_program_agent(const char **path, dt_arena *arena, dt_error *err);
/* Path of dtrun-engine, or DTRUN_ENGINE. Errors as above. */
dt_status dt_program_engine(const char **path, dt_arena *arena, dt_error *err);

#endif
