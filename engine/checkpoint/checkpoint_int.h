/* checkpoint_int: what the files of this folder know beyond checkpoint.h. */
#ifndef DT_ENGINE_CHECKPOINT_INT_H
#define DT_ENGINE_CHECKPOINT_INT_H

#include "base/json.h"
#include "engine/checkpoint/index.h"
#include "engine/checkpoint/io_int.h"
#include "engine/checkpoint/part.h"
#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_checkpoint {
    dt_arena arena; /* everything below points into it, or into the JSON */
    const char *path;
    json_t *json;
    dt_checkpoint_index index;
    dt_checkpoint_part *parts; /* [index.file_count], opened when first used */
};

/* dt_checkpoint_save through given system calls. */
dt_status dt_checkpoint_save_through(const dt_checkpoint_io *io, dt_checkpoint_saved *out,
                                     const dt_checkpoint_place *place,
                                     const dt_checkpoint_info *info, dt_strategy_state *state,
                                     dt_error *err);

/* The index of one node's part (marker `part`), of whose files others may be elsewhere. */
dt_status dt_checkpoint_open_part(dt_checkpoint **out, const char *path, dt_error *err);

/* Whether its parameters are the model's: DT_ERR_RECIPE with the first that is not. */
dt_status dt_checkpoint_check_model(const dt_checkpoint *checkpoint, const dt_model *model,
                                    dt_error *err);

/* The part of a file, opened and digested where it is not yet. */
dt_status dt_checkpoint_use_part(dt_checkpoint_part **out, dt_checkpoint *checkpoint, int64_t file,
                                 dt_error *err);

/* Reads every byte: digests of all files, every piece of the index. */
dt_status dt_checkpoint_verify(dt_checkpoint *checkpoint, dt_error *err);

/* Takes its markers away first, so that a removal that is cut short leaves nothing that is taken
 * for a checkpoint. */
dt_status dt_checkpoint_remove(const char *path, dt_error *err);

/* gather: everyone's JSON on those who want it, through broadcasts: it needs no shared file system.
 */

/* Collective. all[world_size], zeroed by the caller, gets new references in rank order where it is
 * wanted, elsewhere nothing. */
dt_status dt_checkpoint_gather(json_t **all, const json_t *mine, bool wanted, dt_comm *comm,
                               dt_error *err);

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
