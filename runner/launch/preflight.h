/* preflight: checks everything that can be checked before a run exists: data, placement, memory, programs, disk.
 * Writes nothing.
 *
 * Errors  DT_ERR_RECIPE for what the recipe must change (with the arithmetic for memory), DT_ERR_IO for an
 *         incomplete installation or a full disk
 */
#ifndef DT_RUNNER_LAUNCH_PREFLIGHT_H
#define DT_RUNNER_LAUNCH_PREFLIGHT_H

#include <stdbool.h>

#include "engine/data/budget.h"
#include "recipes/cost/memory.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "runner/node_setup/workdir/workdir.h"

typedef struct dt_preflight {
    dt_recipe recipe; /* recipe as stored: data by URL, nodes by Slurm */
    dt_plan plan;     /* the caller fills in run, attempt, directory and resume_from */
    dt_memory memory;
    dt_dataset_facts data;          /* vocabulary and tokens, as far as known */
    int64_t data_files, data_bytes; /* training data; 0: not read */
    /* format of the first file, as in data.tokens; NULL if not read */
    const char *data_kind;
    const char *
        warnings; /* about the tokenizer, one a line; NULL or "": none. A launch has printed them */
    int64_t ranks_on_node; /* ranks of the fullest node */
    /* memory for the ranks of this machine; 0 if none uses its processors: the engine checks the memory of a GPU */
    int64_t available_bytes;
    int64_t tokens_per_step;
    const dt_tree
        *tree; /* folder of a command for nodes that do not share it, or NULL (workdir.h) */
    const char *warning;       /* about the steps, which are known only with the data; NULL: none */
    const dt_workdir_left_list *left; /* what rules leave out of it; NULL without `tree` */
    const dt_origins *origins; /* origins of the recipe, stored with the attempt; may be NULL */
} dt_preflight;

/* Checks data and plan of the recipe only. source (may be NULL): where the recipe was read from;
 * problems of the data are reported at its line. For `dtrun validate`, which may run on another
 * machine. */
dt_status dt_preflight_recipe(dt_preflight *out, const dt_recipe *recipe,
                              const dt_recipe_source *source, dt_arena *arena, dt_error *err);
/* The same without reading the data, which need not be here: vocabulary and size are taken from
 * the recipe. */
dt_status dt_preflight_without_data(dt_preflight *out, const dt_recipe *recipe, dt_arena *arena,
                                    dt_error *err);
/* The same for nodes that are assumed to have this number of GPUs each. DT_ERR_USAGE if the
 * recipe uses none. */
dt_status dt_preflight_with_gpus(dt_preflight *out, const dt_recipe *recipe,
                                 const dt_recipe_source *source, int64_t gpus, dt_arena *arena,
                                 dt_error *err);
/* Returns whether the plan's ranks on this machine fit its free memory; if not, err says why. */
bool dt_preflight_fits_here(dt_preflight *flight, const dt_recipe *recipe, dt_error *err);
/* Checks the recipe as dt_preflight_recipe does, and whether it fits this machine. */
dt_status dt_preflight_check(dt_preflight *out, const dt_recipe *recipe,
                             const dt_recipe_source *source, dt_arena *arena, dt_error *err);

/* Calls `take` for each line of `warnings`, which may be NULL. */
void dt_preflight_each_warning(const char *warnings,
                               void (*take)(const char *line, size_t length, void *context),
                               void *context);

int64_t dt_preflight_replicas(const dt_preflight *flight); /* over all ranks */
/* Returns the sequences (for sentence pairs: batches) of one step, over all replicas and
 * micro-steps. */
int64_t dt_preflight_samples(const dt_preflight *flight);
/* Returns the tokens or rows of one step; for sentence pairs the target tokens of an average
 * step. */
int64_t dt_preflight_items(const dt_preflight *flight);
/* With data.pack: returns the share of padding in an epoch. */
double dt_preflight_padding(const dt_preflight *flight);
/* Returns DT_ERR_RECIPE if the recipe's steps do not fit its data, as far as known. Sets flight->warning. */
dt_status dt_preflight_check_steps(dt_preflight *flight, dt_arena *arena, dt_error *err);
/* Returns the steps of the whole run as the engine will count them with this plan, from its
 * start (NULL) or from a checkpoint's position; 0 if only a full read of the data can tell. */
int64_t dt_preflight_steps(const dt_preflight *flight, const dt_budget_place *at);

#endif
