/* program: finds the programs that are installed next to dtrun, runs a program to its end and collects its
 * output. */
#ifndef DT_RUNNER_CLI_PROGRAM_H
#define DT_RUNNER_CLI_PROGRAM_H

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* Path of dtrun-agent, or DTRUN_AGENT. DT_ERR_IO if it cannot be run: the installation is broken. */
dt_status dt_program_agent(const char **path, dt_arena *arena, dt_error *err);
/* Path of dtrun-engine, or DTRUN_ENGINE. Errors as above. */
dt_status dt_program_engine(const char **path, dt_arena *arena, dt_error *err);

/* Converts the exit code of an engine (dt_child_run) to a status, with the engine's own message from its
 * stderr, which is split into lines: DT_OK for 0, DT_ERR_USAGE for 2, else DT_ERR_CORRUPT. DT_ERR_IO if it
 * printed no message. */
dt_status dt_program_engine_status(int exit_code, dt_strbuf *errors, dt_error *err);

#endif
