/* evaluate: runs `dtrun-engine evaluate` with the lines of evaluation tasks, on a checkpoint or on a folder of weights.
 *
 * Errors  DT_ERR_USAGE, DT_ERR_RECIPE for a folder that dtrun cannot read; those of the engine
 */
#ifndef DT_RUNNER_LAUNCH_EVALUATE_H
#define DT_RUNNER_LAUNCH_EVALUATE_H

#include "base/strbuf.h"
#include "recipes/fields/recipe.h"
#include "runner/cli/command.h"

typedef struct dt_evaluated_model {
    const char *checkpoint; /* directory; "": a folder of weights */
    dt_recipe recipe;       /* of a folder of weights */
} dt_evaluated_model;

/* Finds what `folder` has: a checkpoint, or weights, whose recipe is derived from them. */
dt_status dt_evaluated_folder(dt_evaluated_model *out, const char *folder, dt_arena *arena,
                              dt_error *err);

/* Appends the result of each row of `lines` to `out`. title: names the model in notes about the progress. */
dt_status dt_evaluate_model(dt_strbuf *out, const dt_evaluated_model *model, const char *title,
                            const dt_strbuf *lines, int64_t rows, const dt_call *call,
                            dt_error *err);

#endif
