/* launch: a recipe with a sweep becomes a group that is driven. */
#ifndef DT_SWEEP_LAUNCH_H
#define DT_SWEEP_LAUNCH_H

#include "recipes/reader.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* All points are read and checked before anything is made. source->sweep says how many there are; *name
 * lives in the arena. */
dt_status dt_sweep_launch(const char **name, const dt_recipe_source *source,
                          const dt_labels *labels, dt_call *call, dt_error *err);

#endif
