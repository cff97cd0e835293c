/* memory: predicts the memory of a rank by part, from the recipe and the number of ranks. The table is shown
 * when a batch does not fit, before anything is started.
 *
 * The formulas are in memory.c at each line. All sizes are in bytes.
 */
#ifndef DT_RECIPES_COST_MEMORY_H
#define DT_RECIPES_COST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* world_size and replicas as in a plan, both at least 1. replicas: those that share the counted memory: all
 * of a process on CPUs, 1 on GPUs. host: the counted memory is host memory, which also holds copies for
 * saves. node_ranks: ranks on the rank's node; 0: all. threads: of each replica; 0: the recipe's, or one. */
typedef struct dt_memory_ranks {
    int64_t world_size, replicas;
    bool host;
    int64_t node_ranks, threads;
} dt_memory_ranks;

typedef struct dt_memory {
    dt_memory_ranks ranks;
    int64_t parameter_count; /* elements, tied embedding once, vocabulary padded */
    int64_t
        trained_count;  /* those that are trained; the others are held in the compute type alone */
    int64_t held_count; /* trained ones of a tensor rank, before fsdp divides them */
    int64_t frozen_count; /* the others of a tensor rank */
    int64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, buffers_bytes;
    int64_t
        runtime_bytes; /* part of the buffers: the program, workspace of products, communicators */
    int64_t
        copy_bytes; /* part of the buffers: snapshot of what a rank writes in a background save; if all ranks hold the
                         * whole state, only rank 0 has one */
    int64_t translator_bytes; /* part of the buffers: a second model for 'evaluate.bleu', 'evaluate.tasks' or
                               'evaluate.samples' */
    int64_t total_bytes;
} dt_memory;

/* `vocab` is that of the data, used if the recipe leaves it out (0: unknown). */
void dt_memory_estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab,
                        const dt_memory_ranks *ranks);

/* Returns whether a run saves in the background: any save before its last step, as far as known. */
bool dt_memory_saves_beside(const dt_recipe *recipe, bool validates);

/* Returns the floats of optimizer state for each element, averaged over parameter_count elements. */
double dt_memory_states(const dt_recipe *recipe, int64_t parameter_count);

/* Adds an aligned line for each part, for people: "activations  1.2 GB  batch 4 x 1024 tokens x 12 layers".
 */
void dt_memory_table(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe);

/* DT_ERR_RECIPE with the table if `ranks_on_node` times the total exceeds available_bytes. */
dt_status dt_memory_check(const dt_recipe *recipe, int64_t vocab, const dt_memory_ranks *ranks,
                          int64_t ranks_on_node, int64_t available_bytes, const char *node,
                          dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
