/* fit: whether a run by a recipe can resume from a checkpoint, told from its index alone.
 *
 * The command that resumes asks before there is an attempt, the engine before it loads.
 * Errors  DT_ERR_RECIPE with what differs: parameters (missing, surplus, of another shape), or an
 *         optimizer whose moments the checkpoint does not have
 */
#ifndef DT_ENGINE_CHECKPOINT_FIT_H
#define DT_ENGINE_CHECKPOINT_FIT_H

#include "engine/checkpoint/checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
