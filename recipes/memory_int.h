/* memory_int: what the files of the forecast (memory.h) share. */
#ifndef DT_RECIPES_MEMORY_INT_H
#define DT_RECIPES_MEMORY_INT_H

#include "recipes/architecture/architecture.h"
#include "recipes/matrices.h"
#include "recipes/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many ranks a rank's share is one of; 1: it holds everything. */
typedef struct dt_memory_shares {
    int64_t masters, gradients, states;
} dt_memory_shares;

dt_memory_shares dt_memory_shares_of(const dt_recipe *recipe, int64_t world_size);
bool dt_memory_is_full_shard(const dt_recipe *recipe);
/* Hidden matrices that the optimizer steps whole. */
dt_matrices dt_memory_matrices(const dt_recipe *recipe);
/* Floats that the optimizer keeps beside an element, of such a matrix or of another parameter. */
int dt_memory_states_of(const dt_recipe *recipe, bool matrix);

/* memory_host: what a rank on CPUs holds beside the tensors of memory.h: the program, what matrix
 * products work in, and the segment that ranks of a node share.
 *
 * Measured, not derived, are two numbers of memory_host.c: the program, and what a thread that makes
 * products keeps. `cli.memory_forecast` holds the sum to what the system says of ranks.
 */

/* Of a segment that ranks share, a slot (engine/comm/shm/segment.h). */
#define DT_MEMORY_SLOT_BYTES ((int64_t)512 << 10)

/* ranks->host; bytes of one rank. */
int64_t dt_memory_host_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif
