/* convert: converts other programs' command lines to recipes, for dtrun import fairseq, llm.c, nanogpt,
 * slurm and command.
 *
 * Splits the command line into words (command_line.h), reads the launcher in front (launcher.h), and converts each flag to
 * fields of a recipe (draft.h) with the program's table of flags (flags.h, tool.h).
 */
#ifndef DT_RUNNER_CONVERT_H
#define DT_RUNNER_CONVERT_H

#include "runner/cli/command.h"

/* Returns true if NAME is a supported program: fairseq, llm.c, nanogpt, slurm, command. */
bool dt_convert_knows(const char *name);
/* Runs dtrun import NAME: writes the recipe to stdout or to the file of -o, and what was not carried to stderr. */
dt_status dt_convert(dt_call *call, dt_error *err);

#endif
