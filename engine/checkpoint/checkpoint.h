/* checkpoint: a directory that holds a whole training state, or is not taken for one.
 *
 * Layout     step-00000100/  index.json  model-0.safetensors optimizer-0.safetensors ...  complete
 *            written under a temporary name, files and folder synced, renamed, then `complete`
 *            (the marker, holding the digest of index.json) is written and synced. A reader takes
 *            only marked ones whose sizes and digests agree. Where the nodes share no file system
 *            each has such a directory with its own ranks' files and the marker `part`, which no
 *            reader takes for a checkpoint. The format, byte by byte, is in docs/checkpoint.md.
 * Contents   fp32 parameters and the optimizer's moments, per chunk (name, global shape, slice), so
 *            that any strategy on any mesh loads it; step, sampler position, loss scale,
 *            tokenizer, recipe (with the seed). The vocabulary's padding is not stored, so that any
 *            padding loads it
 * Threads    one at a time (writer.h saves in the background). One run writes below a parent
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

/* Why one was saved, which says by what rule it stays. */
enum {
    DT_CHECKPOINT_STEPS = 1, /* checkpoint.every */
    DT_CHECKPOINT_EPOCH = 2, /* checkpoint.every_epoch */
    DT_CHECKPOINT_BEST = 4,  /* no evaluation before it was better */
    DT_CHECKPOINT_END = 8    /* the run was over, or stopped */
};

/* One that lies beside the tensors, the tokenizer's: borrowed until the save is over. */
typedef struct dt_checkpoint_beside {
    /* "tokenizer.json", "translation.json" or "NAME.tiktoken"; NULL: there is none */
    const char *name;
    const char *bytes;
    size_t length;
} dt_checkpoint_beside;

/* Everything but the tensors. */
typedef struct dt_checkpoint_info {
    const char *run;
    int64_t attempt, step; /* steps done: where optimizer and schedule stand */
    int64_t steps_total;   /* of the run, by recipe and data; 0: not known */
    int64_t epoch, sample; /* sampler: where the next step starts */
    int64_t step_samples;  /* of a step, over all ranks and micro-steps; 0: not known */
    double loss, valid_loss, valid_bleu; /* of this step; NaN: none */
    double best_score;     /* the lowest so far whose checkpoint is whole, with this */
    unsigned kept_for;     /* DT_CHECKPOINT_STEPS | ... */
    const char *optimizer; /* the recipe's value: what the moments mean */
    double loss_scale;     /* fp16; 0: none */
    int64_t clean_steps, skipped_steps;
    dt_best_by best_by;                  /* the recipe's */
    json_t *recipe;                      /* resolved */
    json_t *tokenizer;                   /* dt_tokenizer_to_json */
    json_t *data;                        /* dt_fingerprint_make; NULL: not known */
    dt_checkpoint_beside tokenizer_file; /* for a save: rank 0 writes it */
} dt_checkpoint_info;

/* What checkpoints are compared by: the lower, the better; NaN: this step was not evaluated. */
static inline double dt_score_by(dt_best_by by, double valid_loss, double valid_bleu)
{
    return by == DT_BEST_BY_VALID_BLEU ? -valid_bleu : valid_loss;
}

static inline double dt_checkpoint_score(const dt_checkpoint_info *info)
{
    return dt_score_by(info->best_by, info->valid_loss, info->valid_bleu);
}

/* Where the ranks write. */
typedef struct dt_checkpoint_place {
    const char *parent; /* of the checkpoint directories */
    bool shared;        /* false: each node has a `parent` of its own */
    bool lead;          /* this rank makes the directory: rank 0, or the first one of each node */
} dt_checkpoint_place;

/* What a save has made, the same on every rank. */
typedef struct dt_checkpoint_saved {
    char directory[64]; /* the name within `parent`, with "-2", "-3" behind it where that step has
                           a checkpoint already */
    char digest[33];    /* of its index, which holds those of its files */
    int64_t bytes;      /* of the whole */
} dt_checkpoint_saved;

/* All ranks call it. Each writes its chunks; the leads write the index, rename and mark, and they
 * agree after each step. When any rank fails all return an error, and nothing marked is left (a
 * peer that dies after the marker was written leaves a whole checkpoint behind). */
dt_status dt_checkpoint_save(dt_checkpoint_saved *out, const dt_checkpoint_place *place,
                             const dt_checkpoint_info *info, dt_strategy_state *state,
                             dt_error *err);

/* What stays. One that any rule keeps stays, and the newest always does. */
typedef struct dt_checkpoint_keep {
    int64_t newest; /* of those saved every few steps or at an end; 0: all */
    int64_t epochs; /* of those saved at the end of an epoch; 0: all */
    int64_t best;   /* of those saved as the best so far: the lowest scores, the newer of equals */
} dt_checkpoint_keep;

/* Removes the others, and leftovers of killed saves. The writer calls it, between saves. Newest:
 * the highest attempt, then the highest step. One whose directory is held by flock(LOCK_SH) stays
 * until the next time. */
dt_status dt_checkpoint_prune(const char *parent, const dt_checkpoint_keep *keep, dt_error *err);
/* What that would remove, as paths in the arena. */
dt_status dt_checkpoint_beyond(const char ***paths, int64_t *count, const char *parent,
                               const dt_checkpoint_keep *keep, dt_arena *arena, dt_error *err);
/* *removed false: somebody holds it. */
dt_status dt_checkpoint_remove_unheld(bool *removed, const char *path, dt_error *err);

typedef struct dt_checkpoint dt_checkpoint; /* an open one: index read, marker and sizes checked */

dt_status dt_checkpoint_open(dt_checkpoint **out, const char *path, dt_error *err);
void dt_checkpoint_close(dt_checkpoint *checkpoint);
/* Borrowed from the open checkpoint. */
const dt_checkpoint_info *dt_checkpoint_get_info(const dt_checkpoint *checkpoint);

/* All ranks call it. Fills strategy chunks (parameters and moments); digests of the files read are
 * checked. DT_ERR_RECIPE where the model is another one. */
dt_status dt_checkpoint_load(dt_checkpoint *checkpoint, dt_strategy_state *state, dt_error *err);

/* One whole parameter, fp32, by its name (generate); rows of padding come out zero. */
dt_status dt_checkpoint_load_param(dt_checkpoint *checkpoint, const dt_param *param, float *out,
                                   dt_error *err);

/* Whether a checkpoint may be taken, by its path. */
typedef bool dt_checkpoint_fit_fn(const void *context, const char *path);

/* The newest whole one below `parent`, skipping damaged ones (each said through dt_log_warn), and
 * those that do not fit. *path NULL where there is none. */
dt_status dt_checkpoint_find_newest_fit(const char **path, const char *parent,
                                        dt_checkpoint_fit_fn *fits, const void *context,
                                        dt_arena *arena, dt_error *err);
/* The same, and all fit. */
dt_status dt_checkpoint_find_newest(const char **path, const char *parent, dt_arena *arena,
                                    dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
