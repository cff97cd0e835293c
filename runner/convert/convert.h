/* convert: recipes of other programs' command lines: what dtrun import fairseq, llm.c, nanogpt and slurm do.
 *
 * A command line's words are read (command_line.h), the launcher in front of them is taken off (launcher.h), and
 * the program's table of flags (flags.h, tool.h) says what each becomes of a recipe (draft.h).
 */
#ifndef DT_RUNNER_CONVERT_H
#define DT_RUNNER_CONVERT_H

#include "runner/cli/command.h"

/* Whether NAME is a program whose command lines become recipes: fairseq, llm.c, nanogpt, slurm. */
bool dt_convert_knows(const char *name);
/* dtrun import NAME: the recipe to stdout or into the file of -o, what it does not carry to stderr. */
dt_status dt_convert(dt_call *call, dt_error *err);

#endif
