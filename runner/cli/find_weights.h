/* find_weights: finds the checkpoint that a recipe's model.from names as RUN or RUN@STEP. */
#ifndef DT_RUNNER_FIND_WEIGHTS_H
#define DT_RUNNER_FIND_WEIGHTS_H

#include "recipes/foreign/weights.h"

/* A dt_weights_of_run. DT_ERR_RECIPE if the run or the checkpoint does not exist (any more). */
dt_status dt_find_weights(const char **path, const char *name, dt_arena *arena, dt_error *err);

#endif
