/* convert: converts other programs' command lines to recipes, for dtrun import fairseq, llm.c, nanogpt,
 * slurm and command.
 *
 * Reads the one command of a script (script.h), or takes its words as a shell split them, or notes them while the script
 * runs (record.h); reads the launcher in front (launcher.h), and converts each flag to fields of a recipe (draft.h) with the
 * program's table of flags (flags.h, tool.h). What is not certain is refused.
 */
#ifndef DT_RUNNER_CONVERT_H
#define DT_RUNNER_CONVERT_H

#include "runner/cli/command.h"

/* Returns true if NAME is a supported program: fairseq, llm.c, nanogpt, slurm, command. */
bool dt_convert_knows(const char *name);
/* Runs dtrun import NAME: writes the recipe to stdout or to the file of -o, and what was not carried to stderr. */
dt_status dt_convert(dt_call *call, dt_error *err);
/* Runs dtrun import --record: runs a script with stand-ins for launchers, and writes a recipe for each of their commands. */
dt_status dt_convert_record(dt_call *call, dt_error *err);

#endif
