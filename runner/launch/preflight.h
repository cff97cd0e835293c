/* preflight: everything that can be checked before a run exists: data, placement, memory, programs,
 * disk. Nothing is written.
 *
 * Errors  DT_ERR_RECIPE for what the recipe must change (with the arithmetic where it is about
 *         memory), DT_ERR_IO for programs of an incomplete installation, DT_ERR_IO for a disk
 *         without room
 */
#ifndef DT_RUNNER_LAUNCH_PREFLIGHT_H
#define DT_RUNNER_LAUNCH_PREFLIGHT_H

#include <stdbool.h>

#include "engine/data/budget.h"
#include "recipes/memory.h"
#include "recipes/plan.h"
#include "recipes/reader.h"

typedef struct dt_preflight {
    dt_recipe recipe; /* as it was asked for, and is kept: data by URL, nodes by Slurm */
    dt_plan plan;     /* run, attempt, directory, resume_from are the caller's to fill in */
    dt_memory memory;
    dt_dataset_facts data;          /* its vocabulary and tokens, as far as they are known */
    int64_t data_files, data_bytes; /* to train on; 0: they were not looked at */
    const char *data_kind;          /* of the first, as data.tokens has it; NULL with them */
    int64_t ranks_on_node;          /* of the fullest */
    int64_t available_bytes;
    int64_t tokens_per_step;
    const dt_origins *origins; /* of the recipe, kept with the attempt; may be NULL */
} dt_preflight;

/* The recipe alone: data and plan. `source` (may be NULL) is where it was read from: what is wrong
 * with the data is reported at its line. For `dtrun validate`, which may run on another machine. */
dt_status dt_preflight_recipe(dt_preflight *out, const dt_recipe *recipe,
                              const dt_recipe_source *source, dt_arena *arena, dt_error *err);
/* The same without a look at the data, which need not be here: their vocabulary and size are taken to be
 * what the recipe says. */
dt_status dt_preflight_without_data(dt_preflight *out, const dt_recipe *recipe, dt_arena *arena,
                                    dt_error *err);
/* The recipe and its data, for nodes that are taken to have so many GPUs each, whatever they have.
 * DT_ERR_USAGE where it wants none. */
dt_status dt_preflight_with_gpus(dt_preflight *out, const dt_recipe *recipe,
                                 const dt_recipe_source *source, int64_t gpus, dt_arena *arena,
                                 dt_error *err);
/* Whether the ranks that the plan has here fit the memory that is free now; why not, in err. */
bool dt_preflight_fits_here(dt_preflight *flight, const dt_recipe *recipe, dt_error *err);
/* The same, and whether it fits this machine. */
dt_status dt_preflight_check(dt_preflight *out, const dt_recipe *recipe,
                             const dt_recipe_source *source, dt_arena *arena, dt_error *err);

int64_t dt_preflight_replicas(const dt_preflight *flight); /* of all ranks */
/* Sequences of one step, over all replicas and micro-steps; of sentence pairs batches. */
int64_t dt_preflight_samples(const dt_preflight *flight);
/* Tokens or rows of one step; of sentence pairs the target tokens of a mean one. */
int64_t dt_preflight_items(const dt_preflight *flight);
/* With data.pack: the share of an epoch's places that hold no token. */
double dt_preflight_padding(const dt_preflight *flight);
/* Whether the recipe's steps fit its data, as far as these are known. DT_ERR_RECIPE. */
dt_status dt_preflight_check_steps(const dt_preflight *flight, dt_error *err);
/* Steps of the whole run, as the engine will count them with this plan, from its start (NULL) or
 * from where a checkpoint stands; 0 where only a full read of the data can tell. */
int64_t dt_preflight_steps(const dt_preflight *flight, const dt_budget_place *at);

#endif
