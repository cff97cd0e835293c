/* checkpoint_int: declares what the files of this folder share beyond checkpoint.h. */
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
    dt_arena arena; /* owns the memory of the fields below, except what the JSON owns */
    const char *path;
    json_t *json;
    dt_checkpoint_index index;
    dt_checkpoint_part *parts; /* [index.file_count] files, opened on first use */
};

/* dt_checkpoint_save with the given system calls. */
dt_status dt_checkpoint_save_through(const dt_checkpoint_io *io, dt_checkpoint_saved *out,
                                     const dt_checkpoint_place *place,
                                     const dt_checkpoint_info *info, dt_strategy_state *state,
                                     dt_error *err);

/* Open the index of one node's part (marker `part`); some of its files can be on other nodes. */
dt_status dt_checkpoint_open_part(dt_checkpoint **out, const char *path, dt_error *err);

/* Check that its parameters are the model's. DT_ERR_RECIPE naming the first that differs. */
dt_status dt_checkpoint_check_model(const dt_checkpoint *checkpoint, const dt_model *model,
                                    dt_error *err);

/* Return the part of a file. On first use, opens it and checks its digest. */
dt_status dt_checkpoint_use_part(dt_checkpoint_part **out, dt_checkpoint *checkpoint, int64_t file,
                                 dt_error *err);

/* Remove a checkpoint. Removes its markers first, so that an interrupted removal leaves nothing
 * that a reader would accept. */
dt_status dt_checkpoint_remove(const char *path, dt_error *err);

/* gather: collects the JSON of all ranks on those that want it, by broadcasts; needs no shared file
 * system.
 */

/* Collective. Where `wanted`, all[world_size], zeroed by the caller, gets new references in rank
 * order; elsewhere it is not touched. */
dt_status dt_checkpoint_gather(json_t **all, const json_t *mine, bool wanted, dt_comm *comm,
                               dt_error *err);

/* shard: writes one rank's part of a checkpoint.
 *
 * Files      model-RANK.safetensors (values) and optimizer-RANK.safetensors (both moments), each
 *            only if the rank holds any. They are separate so that a reader of the model reads only a
 *            third, and other programs find only the model in its file.
 * Keys       a whole parameter has its own name and shape ("wte.weight"); a box keeps its
 *            dimensions and its key contains its position ("wte.weight[0:512,0:64]"); a range is flat and
 *            has its bounds ("wte.weight[4096:8192]"); moments have ".m" and ".v" before the bracket
 * Fragment   {"files": [...], "tensors": {NAME: {"value": [...], "m": [...], "v": [...]}}}, in the
 *            format of the index
 */

/* Write and sync this rank's files in `directory`. *fragment: new reference. */
dt_status dt_checkpoint_shard_write(json_t **fragment, const dt_checkpoint_io *io,
                                    const char *directory, dt_strategy_state *state, dt_error *err);

/* Write the tokenizer's file and add it to the fragment's files. */
dt_status dt_checkpoint_beside_write(json_t *fragment, const dt_checkpoint_io *io,
                                     const char *directory, const dt_checkpoint_beside *file,
                                     dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
