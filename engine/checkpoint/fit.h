/* fit: decides from a checkpoint's index whether a recipe's run can resume from it.
 *
 * The resume command checks this before it starts an attempt, the engine before it loads.
 * Errors  DT_ERR_RECIPE with the difference: parameters (missing, surplus, of another shape), what the model
 *         computes with them, or an optimizer whose moments the checkpoint does not have
 */
#ifndef DT_ENGINE_CHECKPOINT_FIT_H
#define DT_ENGINE_CHECKPOINT_FIT_H

#include "engine/checkpoint/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* new_model: the recipe's model is allowed to compute something else with these parameters. */
dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             bool new_model, dt_error *err);
/* Append the changes in what the model computes that no parameter's shape shows, compared with the
 * recipe in the checkpoint: "model.rope_theta was 10000, is 500000; ..."; nothing if there are
 * none. Fields that the checkpoint's recipe does not have are not compared. */
void dt_checkpoint_model_changes(dt_strbuf *words, const dt_checkpoint *checkpoint,
                                 const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
