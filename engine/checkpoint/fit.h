/* fit: whether a run by a recipe can resume from a checkpoint, told from its index alone.
 *
 * The command that resumes asks before there is an attempt, the engine before it loads.
 * Errors  DT_ERR_RECIPE with what differs: parameters (missing, surplus, of another shape), what the model
 *         computes with them, or an optimizer whose moments the checkpoint does not have
 */
#ifndef DT_ENGINE_CHECKPOINT_FIT_H
#define DT_ENGINE_CHECKPOINT_FIT_H

#include "engine/checkpoint/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* new_model: it may compute something else with these parameters. */
dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             bool new_model, dt_error *err);
/* What it computes otherwise, which no parameter's shape tells, by the recipe that the checkpoint keeps:
 * "model.rope_theta was 10000, is 500000; ..." is appended, nothing where all is the same. Fields that
 * were not known when it was written are not compared. */
void dt_checkpoint_model_changes(dt_strbuf *words, const dt_checkpoint *checkpoint,
                                 const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
