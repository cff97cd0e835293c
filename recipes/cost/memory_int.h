/* memory_int: declares functions shared by the files of the memory forecast (memory.h). */
#ifndef DT_RECIPES_COST_MEMORY_INT_H
#define DT_RECIPES_COST_MEMORY_INT_H

#include "recipes/architecture/architecture.h"
#include "recipes/cost/matrices.h"
#include "recipes/cost/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of ranks that divide each part; 1: each rank holds everything. */
typedef struct dt_memory_shares {
    int64_t masters, gradients, states;
    int64_t frozen; /* parameters that are not trained */
} dt_memory_shares;

dt_memory_shares dt_memory_shares_of(const dt_recipe *recipe, const dt_memory_ranks *ranks);
bool dt_memory_is_full_shard(const dt_recipe *recipe);
/* Returns the hidden matrices that the optimizer updates as whole matrices. */
dt_matrices dt_memory_matrices(const dt_recipe *recipe);
/* Returns the floats of optimizer state for each element of such a matrix, or of another parameter. */
int dt_memory_states_of(const dt_recipe *recipe, bool matrix);

/* memory_host: predicts what a rank on CPUs holds in addition to the tensors of memory.h: the program,
 * workspace of matrix products, and the segment that ranks of a node share.
 *
 * Two numbers of memory.c are measured, not derived: the program, and the workspace of a thread that
 * computes products. `cli.memory_forecast` compares the sum with the resident memory of ranks.
 */

/* Size of one slot of the shared-memory segment (engine/comm/comm_int.h). */
#define DT_MEMORY_SLOT_BYTES ((int64_t)512 << 10)

#ifdef __cplusplus
}
#endif

#endif
