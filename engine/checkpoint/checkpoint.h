/* checkpoint: a directory that holds a whole training state, or is not taken for one.
 *
 * Layout     step-00000100/  index.json  model-0.safetensors optimizer-0.safetensors ...  complete
 *            written under a temporary name, files and folder synced, renamed, then `complete`
 *            (the marker, holding the digest of index.json) is written and synced. A reader takes
 *            only marked ones whose sizes and digests agree. The format, byte by byte, is in
 *            docs/checkpoint.md.
 * Contents   fp32 parameters and both moments, per chunk (name, global shape, slice), so that any
 *            strategy and world size loads it; step, sampler position, tokenizer, recipe (with
 *            the seed). The vocabulary's padding is not stored, so that any padding loads it.
 * Threads    one; the snapshot is taken before the call returns. One run writes below a parent.
 * Errors     DT_ERR_IO (full disk: the partial directory is removed), DT_ERR_CORRUPT naming the
 *            file and what does not agree
 */
#ifndef DT_ENGINE_CHECKPOINT_H
#define DT_ENGINE_CHECKPOINT_H

#include "base/arena.h"
#include "base/json.h"
#include "engine/strategy/strategy.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CHECKPOINT_VERSION 1

/* Everything but the tensors. */
typedef struct dt_checkpoint_info {
    const char *run;
    int64_t attempt, step;   /* steps done */
    int64_t epoch, sample;   /* sampler: where the next step starts */
    double loss, valid_loss; /* NaN: none */
    json_t *recipe;          /* resolved */
    json_t *tokenizer;       /* dt_tokenizer_to_json */
} dt_checkpoint_info;

/* All ranks call it, with a file system that all see. Each writes its chunks; rank 0 writes the
 * index, renames and marks, and they agree after each step. *directory (arena): the name within
 * `parent`, with "-2", "-3" behind it where that step has a checkpoint already; bytes of the
 * whole; digest (33 bytes) of its index, which holds those of its files. On every rank. When any
 * rank fails all return an error, and nothing marked is left (a peer that dies after the marker
 * was written leaves a whole checkpoint behind). */
dt_status dt_checkpoint_save(const char *parent, const dt_checkpoint_info *info,
                             dt_strategy_state *state, dt_arena *arena, const char **directory,
                             int64_t *bytes, char *digest, dt_error *err);

/* Removes all but the newest `keep` marked ones (0: all stay), and leftovers of killed saves. The
 * writer calls it, between saves. Newest: the highest attempt, then the highest step. */
dt_status dt_checkpoint_prune(const char *parent, int64_t keep, dt_error *err);

typedef struct dt_checkpoint dt_checkpoint; /* an open one: index read, marker and sizes checked */

dt_status dt_checkpoint_open(dt_checkpoint **out, const char *path, dt_error *err);
void dt_checkpoint_close(dt_checkpoint *checkpoint);
/* Borrowed from the open checkpoint. */
const dt_checkpoint_info *dt_checkpoint_get_info(const dt_checkpoint *checkpoint);

/* All ranks call it. Fills strategy chunks (parameters and moments); digests of the files read are
 * checked. DT_ERR_RECIPE where the model is another one. */
dt_status dt_checkpoint_load(dt_checkpoint *checkpoint, dt_strategy_state *state, dt_error *err);

/* One whole parameter, fp32, by name (generate); rows of padding come out zero. */
dt_status dt_checkpoint_load_param(dt_checkpoint *checkpoint, const char *name, float *out,
                                   int64_t elems, dt_error *err);

/* The newest whole one below `parent`, skipping damaged ones (each said through dt_log_warn).
 * *path NULL where there is none. */
dt_status dt_checkpoint_find_newest(const char **path, const char *parent, dt_arena *arena,
                                    dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
