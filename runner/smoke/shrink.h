/* shrink: scales a recipe down for this machine: the same strategy, shape of schedule, data, precision and code
 * path, but fewer ranks on CPUs, a smaller model and a few steps.
 *
 * Kept      the strategy with its settings, precision, optimizer, clip, seed, data, tokenizer; kind, activation,
 *           positions and dropout of the model; recomputation, shape of the schedule
 * Shrunk    nodes to this machine, devices to CPUs, ranks, `tensor` to two; depth and width (unless `full`), batch; warm-up, periods
 *           and decay in proportion to the steps
 * Left out  notify, the time limit, sbatch options, the network interface
 * Here      with `here`, nodes and their settings are kept: only the model and the length shrink
 */
#ifndef DT_SMOKE_SHRINK_H
#define DT_SMOKE_SHRINK_H

#include "base/arena.h"
#include "recipes/fields/recipe.h"

typedef struct dt_shrink {
    int64_t ranks; /* 0: two, or one if the recipe has one; with 'tensor' four or two */
    int64_t steps;
    bool full; /* keep the model and its batch */
    bool here; /* keep the nodes, GPUs and ranks */
} dt_shrink;

/* Number of ranks that the recipe asks for. A node whose GPUs are detected counts as having several. */
int64_t dt_shrink_ranks_asked(const dt_recipe *recipe);

/* Makes the recipe run on one rank of the first node. */
void dt_shrink_to_one(dt_recipe *out, const dt_recipe *recipe);
/* Makes each rank of this machine, or each group that divides layers, a node of its own. */
void dt_shrink_spread(dt_recipe *io);

/* Scales the recipe down. Texts and lists are borrowed from `recipe`. */
void dt_shrink_recipe(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how);
/* The same for a recipe with a command: two processes on this machine, fewer restarts and shorter waits. Nothing of the
 * command changes: only its arguments (--set args.*) can make the program small. */
void dt_shrink_command(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how,
                       dt_arena *arena);

#endif
