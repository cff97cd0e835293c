/* nodes_option: turns the value of the option --nodes into a value of the field `nodes`. */
#ifndef DT_RUNNER_LAUNCH_NODES_OPTION_H
#define DT_RUNNER_LAUNCH_NODES_OPTION_H

#include "base/arena.h"

/* Turns "gpu[01-04],big" into a list as in a recipe, in the arena; a text without a comma, a list and NULL are
 * unchanged. */
void dt_nodes_option(const char **out, const char *text, dt_arena *arena);

#endif
