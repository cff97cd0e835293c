/* memory: what a rank will hold, by part, from the recipe and the number of ranks: the arithmetic
 * that is shown when a batch does not fit, before anything is started.
 *
 * Formulas are in memory.c beside each line. Bytes.
 */
#ifndef DT_RECIPES_MEMORY_H
#define DT_RECIPES_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a plan has them, both at least 1. replicas: that share the memory which is counted: those of a
 * process on CPUs; 1 on GPUs, where each has its own. host: that memory is the host's, where copies for
 * saves lie as well. node_ranks: on the rank's node; 0: all of them. threads: of each replica; 0: the
 * recipe's, or one. */
typedef struct dt_memory_ranks {
    int64_t world_size, replicas;
    bool host;
    int64_t node_ranks, threads;
} dt_memory_ranks;

typedef struct dt_memory {
    dt_memory_ranks ranks;
    int64_t parameter_count; /* elements, tied embedding once, vocabulary padded */
    int64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, buffers_bytes;
    int64_t runtime_bytes; /* of the buffers: the program, what products work in, communicators */
    int64_t copy_bytes; /* of the buffers: what a rank writes into a checkpoint, copied for a save
                            * beside training; where ranks hold all of it, rank 0 alone has one */
    int64_t translator_bytes; /* of the buffers: a second model for 'evaluate.bleu' */
    int64_t total_bytes;
} dt_memory;

/* `vocab` is the data's where the recipe leaves it out (0: unknown). */
void dt_memory_estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab,
                        const dt_memory_ranks *ranks);

/* Whether a run saves beside training: anything before its last step, as far as is known. */
bool dt_memory_saves_beside(const dt_recipe *recipe, bool validates);

/* Floats that the optimizer keeps beside an element, on average over parameter_count elements. */
double dt_memory_states(const dt_recipe *recipe, int64_t parameter_count);

/* One line a part, aligned, for people: "activations  1.2 GB  batch 4 x 1024 tokens x 12 layers".
 */
void dt_memory_table(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe);

/* DT_ERR_RECIPE with the table where `ranks_on_node` times the total is over available_bytes. */
dt_status dt_memory_check(const dt_recipe *recipe, int64_t vocab, const dt_memory_ranks *ranks,
                          int64_t ranks_on_node, int64_t available_bytes, const char *node,
                          dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
