/* data_show: prints the first conversations of a recipe with what is trained of them, for `dtrun data show`. */
#ifndef DT_RUNNER_COMMANDS_DATA_SHOW_H
#define DT_RUNNER_COMMANDS_DATA_SHOW_H

#include "runner/cli/command.h"

/* The operands are "show", the recipe, and how many conversations; the options --from and --tokens. */
dt_status dt_data_show(dt_call *call, dt_error *err);

#endif
