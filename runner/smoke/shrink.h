/* shrink: a recipe as it is tried on this machine: the same strategy, shape of schedule, data,
 * precision and code path, on fewer ranks of its processors, with a smaller model, for a few steps.
 *
 * Kept      the strategy with all that it is told, precision, optimizer, clip, seed, data, tokenizer,
 *           kind, activation, positions and dropout of the model, recomputation, shape of the schedule
 * Shrunk    nodes to this one, devices to processors, ranks; depth and width (unless `full`), batch;
 *           warm-up, periods and decay in proportion to the steps
 * Left out  who is told (notify), the time limit, what is for sbatch, the interface of the network
 * Here      its own nodes, with all that says how they are used: only the model and the length shrink
 */
#ifndef DT_SMOKE_SHRINK_H
#define DT_SMOKE_SHRINK_H

#include "recipes/recipe.h"

typedef struct dt_shrink {
    int64_t ranks; /* 0: two, or one where the recipe can have no more */
    int64_t steps;
    bool full; /* the model and its batch as they are */
    bool here; /* the nodes, GPUs and ranks as they are */
} dt_shrink;

/* Ranks that the recipe asks for, as far as it says: a node whose GPUs are found has one or more. */
int64_t dt_shrink_ranks_asked(const dt_recipe *recipe);

/* The same on one rank, of the first node. */
void dt_shrink_to_one(dt_recipe *out, const dt_recipe *recipe);
/* The ranks of this machine as so many nodes of one rank each. */
void dt_shrink_spread(dt_recipe *io);

/* What is not copied is borrowed from `recipe`. */
void dt_shrink_recipe(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how);

#endif
