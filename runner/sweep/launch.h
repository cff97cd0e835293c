/* launch: creates a group from a recipe with a sweep, and starts its driver. */
#ifndef DT_SWEEP_LAUNCH_H
#define DT_SWEEP_LAUNCH_H

#include "recipes/read/reader.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* Reads and checks all points before anything is created. source->sweep gives their number;
 * *name lives in the arena. */
dt_status dt_sweep_launch(const char **name, const dt_recipe_source *source,
                          const dt_labels *labels, dt_call *call, dt_error *err);

#endif
