/* program: the programs that are installed beside dtrun. */
#ifndef DT_RUNNER_PROGRAM_H
#define DT_RUNNER_PROGRAM_H

#include "base/arena.h"
#include "base/error.h"

/* "dtrun-agent", or what DTRUN_AGENT names. DT_ERR_IO where it cannot be run: that is a broken
 * installation, not a wrong command line. */
dt_status dt_program_agent(const char **path, dt_arena *arena, dt_error *err);
/* "dtrun-engine", or what DTRUN_ENGINE names. */
dt_status dt_program_engine(const char **path, dt_arena *arena, dt_error *err);

#endif
