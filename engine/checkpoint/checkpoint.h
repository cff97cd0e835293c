/* checkpoint: writes and reads checkpoints, lists them, and finds the one from which a run continues.
 *
 * Layout     step-00000100/  index.json  model-0.safetensors optimizer-0.safetensors ...  complete
 *            written under a temporary name, files and folder synced, renamed, then `complete`
 *            (the marker, which contains the digest of index.json) is written and synced. A reader
 *            accepts only checkpoints that are marked and whose sizes and digests match. If the nodes do
 *            not share a file system, each node has such a directory with its own ranks' files and the
 *            marker `part`, which no reader accepts. docs/checkpoint.md has the format byte by byte.
 * Contents   fp32 parameters and the optimizer's moments, per chunk (name, global shape, slice), so
 *            that any strategy on any mesh can load it (with lora those of the adapter alone, and the
 *            digests of the files of its base); step, sampler position, loss scale,
 *            tokenizer, recipe (with the seed). Padding of the vocabulary is not stored, so the loading
 *            program can use any padding
 * Threads    one at a time (writer.h saves in the background). Only one run writes below a parent
 * Errors     DT_ERR_IO (full disk: the partial directory is removed), DT_ERR_CORRUPT naming the
 *            file and the mismatch
 */
#ifndef DT_ENGINE_CHECKPOINT_CHECKPOINT_H
#define DT_ENGINE_CHECKPOINT_CHECKPOINT_H

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/checkpoint/name.h"
#include "engine/comm/comm.h"
#include "engine/strategy/strategy.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* list: lists the checkpoints below a directory, newest first.
 *
 * Newest is the highest attempt, then the highest step: a run that was resumed from an older
 * checkpoint supersedes what its earlier attempt had reached.
 */

typedef struct dt_checkpoint_entry {
    const char *path;
    dt_checkpoint_name name;
    bool whole;               /* has the marker `complete` */
    bool marked;              /* has the marker `complete` or `part` */
    bool opens;               /* marked, index readable, sizes match (digests not checked) */
    const char *problem;      /* why the checkpoint does not open; otherwise "" */
    int64_t attempt;          /* attempt that saved it; -1 if it does not open */
    double valid_loss, score; /* score: dt_checkpoint_score */
    dt_best_by best_by;       /* what `score` measures */
    unsigned kept_for;        /* reasons of the save: DT_CHECKPOINT_STEPS | ... */
} dt_checkpoint_entry;

/* List every directory with a checkpoint's name; an empty list if `parent` does not exist. Both
 * outputs are in the arena. */
dt_status dt_checkpoint_list(dt_checkpoint_entry **out, int64_t *count, const char *parent,
                             dt_arena *arena, dt_error *err);

#define DT_CHECKPOINT_VERSION 1

/* Reasons for a save, which determine how long the checkpoint is retained. */
enum {
    DT_CHECKPOINT_STEPS = 1, /* saved every checkpoint.every steps */
    DT_CHECKPOINT_EPOCH = 2, /* saved every checkpoint.every_epoch epochs */
    DT_CHECKPOINT_BEST = 4,  /* saved because no earlier evaluation was better */
    DT_CHECKPOINT_END = 8    /* saved at the end of the run, or at a stop */
};

/* Evaluations of this step that a stop interrupted: a resumed run computes them first. */
enum {
    DT_CHECKPOINT_LACKS_VALIDATION = 1,
    DT_CHECKPOINT_LACKS_TASKS = 2,
    DT_CHECKPOINT_LACKS_SAMPLES = 4
};

/* A file next to the tensors, for the tokenizer; borrowed until the save ends. */
typedef struct dt_checkpoint_beside {
    /* "tokenizer.json", "translation.json" or "NAME.tiktoken"; NULL: none */
    const char *name;
    const char *bytes;
    size_t length;
} dt_checkpoint_beside;

/* Everything that a checkpoint contains except the tensors. */
typedef struct dt_checkpoint_info {
    const char *run;
    int64_t attempt, step; /* completed steps: position of optimizer and schedule */
    int64_t steps_total;   /* steps of the whole run, from recipe and data; 0: unknown */
    int64_t epoch, sample; /* sampler position where the next step starts */
    int64_t step_samples;  /* samples per step, over all ranks and micro-steps; 0: unknown */
    double loss, valid_loss, valid_bleu; /* losses and BLEU of this step; NaN: not computed */
    /* lowest score so far, including this one, whose checkpoint is complete */
    double best_score;
    unsigned kept_for;     /* reasons of the save: DT_CHECKPOINT_STEPS | ... */
    unsigned missing;      /* DT_CHECKPOINT_LACKS_VALIDATION | ... */
    const char *optimizer; /* optimizer.kind, which determines the stored moments */
    double loss_scale;     /* loss scale of fp16; 0: none */
    int64_t clean_steps, skipped_steps;
    dt_best_by best_by; /* checkpoint.best_by of the recipe */
    json_t *recipe;     /* resolved recipe of the run */
    json_t *tokenizer;  /* result of dt_tokenizer_to_json */
    json_t *data;       /* result of dt_fingerprint_make; NULL: unknown */
    json_t *base; /* dt_weights_base_make: what the adapter was trained on; NULL: no adapter */
    dt_checkpoint_beside tokenizer_file; /* the tokenizer's file, written by rank 0 of a save */
} dt_checkpoint_info;

/* The score that checkpoints are compared by: lower is better; NaN: this step was not evaluated. */
static inline double dt_score_by(dt_best_by by, double valid_loss, double valid_bleu)
{
    return by == DT_BEST_BY_VALID_BLEU ? -valid_bleu : valid_loss;
}

static inline double dt_checkpoint_score(const dt_checkpoint_info *info)
{
    return dt_score_by(info->best_by, info->valid_loss, info->valid_bleu);
}

/* Where the ranks write checkpoints. */
typedef struct dt_checkpoint_place {
    const char *parent; /* contains the checkpoint directories */
    bool shared;        /* false: each node has its own `parent` */
    /* this rank creates the directory: rank 0, or the first rank of each node if not shared */
    bool lead;
} dt_checkpoint_place;

/* Result of a save, equal on every rank but for failed_here. */
typedef struct dt_checkpoint_saved {
    /* name within `parent`; ends in "-2", "-3" if the step already had a checkpoint */
    char directory[64];
    char digest[33];  /* digest of the index, which contains the digests of the files */
    int64_t bytes;    /* total size of the checkpoint in bytes */
    bool failed_here; /* after an error: this rank's part failed, so that the error says why */
} dt_checkpoint_saved;

/* Collective. Each rank writes its chunks; the leads write the index, rename and mark, and all
 * agree after each step. If any rank fails, all return an error and no marked directory remains
 * (but if a peer dies after the marker was written, a complete checkpoint remains). */
dt_status dt_checkpoint_save(dt_checkpoint_saved *out, const dt_checkpoint_place *place,
                             const dt_checkpoint_info *info, dt_strategy_state *state,
                             dt_error *err);

/* Retention rules. A checkpoint stays if any rule keeps it, and the newest always stays. */
typedef struct dt_checkpoint_keep {
    int64_t newest; /* number of step and final checkpoints kept; 0: all */
    int64_t epochs; /* number of checkpoints kept of those saved at the end of an epoch; 0: all */
    /* number of checkpoints kept with the lowest scores; of equal scores the newer one is kept */
    int64_t best;
} dt_checkpoint_keep;

/* Remove the other checkpoints, and leftovers of killed saves. Called by the writer between saves.
 * Newest: the highest attempt, then the highest step. A directory locked with flock(LOCK_SH) stays
 * until the next call. */
dt_status dt_checkpoint_prune(const char *parent, const dt_checkpoint_keep *keep, dt_error *err);
/* List what dt_checkpoint_prune would remove, as paths in the arena. */
dt_status dt_checkpoint_beyond(const char ***paths, int64_t *count, const char *parent,
                               const dt_checkpoint_keep *keep, dt_arena *arena, dt_error *err);
/* Remove a checkpoint unless it is locked: then *removed is false. */
dt_status dt_checkpoint_remove_unheld(bool *removed, const char *path, dt_error *err);

/* an open checkpoint: index read, marker and sizes checked */
typedef struct dt_checkpoint dt_checkpoint;

dt_status dt_checkpoint_open(dt_checkpoint **out, const char *path, dt_error *err);
/* The same for a reader of parameters alone: nodes that do not train get no state of the optimizer. */
dt_status dt_checkpoint_open_values(dt_checkpoint **out, const char *path, dt_error *err);
void dt_checkpoint_close(dt_checkpoint *checkpoint);
/* The returned info is borrowed from the open checkpoint. */
const dt_checkpoint_info *dt_checkpoint_get_info(const dt_checkpoint *checkpoint);

/* Verify every byte: digests of all files, and every piece of the index. */
dt_status dt_checkpoint_verify(dt_checkpoint *checkpoint, dt_error *err);

/* Collective. Fills the strategy's chunks (parameters and moments); checks the digests of the files
 * it reads. DT_ERR_RECIPE if the model differs. */
dt_status dt_checkpoint_load(dt_checkpoint *checkpoint, dt_strategy_state *state, dt_error *err);

/* Load one whole parameter as fp32, by its name, for generation; padding rows are zero. */
dt_status dt_checkpoint_load_param(dt_checkpoint *checkpoint, const dt_param *param, float *out,
                                   dt_error *err);

/* Returns whether the checkpoint at `path` is acceptable to the caller. */
typedef bool dt_checkpoint_fit_fn(const void *context, const char *path);

/* Find the newest complete checkpoint below `parent`, skipping damaged ones (each logged by
 * dt_log_warn) and those that `fits` rejects. *path is NULL if there is none. */
dt_status dt_checkpoint_find_newest_fit(const char **path, const char *parent,
                                        dt_checkpoint_fit_fn *fits, const void *context,
                                        dt_arena *arena, dt_error *err);
/* Like dt_checkpoint_find_newest_fit, but accepts every complete checkpoint. */
dt_status dt_checkpoint_find_newest(const char **path, const char *parent, dt_arena *arena,
                                    dt_error *err);

/* copy: copies a checkpoint to be the start of another run.
 *
 * Files are hard-linked if the file system can (nothing ever writes to them), else copied. The index is
 * rewritten as attempt 0 of the new run, so that every checkpoint that this run saves is newer. An
 * interrupted copy leaves an incomplete directory, which readers ignore.
 */

/* Copy `from` below `parent`, which is created. *path and *digest (of its index) are in the arena.
 * DT_ERR_IO if the source is removed meanwhile. */
dt_status dt_checkpoint_copy(const char **path, const char **digest, const char *from,
                             const char *parent, const char *run, dt_arena *arena, dt_error *err);

/* agree: makes an operation fail on all ranks if it failed on one. */

/* Collective. DT_OK if `mine` is DT_OK on every rank. A rank that did not fail itself gets
 * DT_ERR_IO naming the failed rank. `doing` completes "rank 2 failed to ...". */
dt_status dt_checkpoint_agree(dt_comm *comm, dt_status mine, const char *doing, dt_error *err);

/* fit: decides from a checkpoint's index whether a recipe's run can resume from it.
 *
 * The resume command checks this before it starts an attempt, the engine before it loads.
 * Errors  DT_ERR_RECIPE with the difference: parameters (missing, surplus, of another shape), what the model
 *         computes with them, or an optimizer whose moments the checkpoint does not have
 */

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
