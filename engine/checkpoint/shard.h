/* shard: what one rank adds to a checkpoint.
 *
 * Files      model-RANK.safetensors (values) and optimizer-RANK.safetensors (both moments), each
 *            only where the rank holds any. Apart, so that one who only wants the model reads a
 *            third, and other programs find nothing but the model in its file.
 * Keys       a whole parameter has its own name and shape ("wte.weight"); a box of one keeps its
 *            dimensions and says which ("wte.weight[0:512,0:64]"); a range is flat and says so too
 *            ("wte.weight[4096:8192]"); moments have ".m" and ".v" before that
 * Fragment   {"files": [...], "tensors": {NAME: {"value": [...], "m": [...], "v": [...]}}}, parts
 *            of the index in its own form
 */
#ifndef DT_ENGINE_CHECKPOINT_SHARD_H
#define DT_ENGINE_CHECKPOINT_SHARD_H

#include "engine/checkpoint/index.h"
#include "engine/checkpoint/io_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes and syncs this rank's files in `directory`. *fragment: new reference. */
dt_status dt_checkpoint_shard_write(json_t **fragment, const dt_checkpoint_io *io,
                                    const char *directory, dt_strategy_state *state, dt_error *err);

/* The same for a file that is no tensor's; it joins the fragment's. */
dt_status dt_checkpoint_beside_write(json_t *fragment, const dt_checkpoint_io *io,
                                     const char *directory, const dt_checkpoint_beside *file,
                                     dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
