/* matrices: computes the cost of whole-matrix updates of hidden matrices, and the rank that owns each matrix.
 *
 * Divided    ddp: rank by rank in the order of the parameters, balanced by FLOPs. fsdp: each rank updates
 *            the matrices of which it holds a part. dp: one process updates all
 */
#ifndef DT_RECIPES_COST_MATRICES_H
#define DT_RECIPES_COST_MATRICES_H

#include "base/error.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_matrices {
    int64_t elems;      /* of all matrices; 0 if none is updated whole */
    int64_t work_bytes; /* largest workspace of one matrix */
    double flops;       /* of all matrices, in a step */
} dt_matrices;

void dt_matrices_count(dt_matrices *out, const dt_recipe *recipe);

/* Computes the FLOPs of a step on the rank with the most of them. */
double dt_matrices_rank_flops(const dt_recipe *recipe, int64_t world_size, dt_arena *arena);

/* Returns the owner, of `world_size` ranks, of a matrix that costs `flops`, if the matrices before it cost
 * `before` and all together `all`. */
int64_t dt_matrix_owner(double before, double flops, double all, int64_t world_size);

#ifdef __cplusplus
}
#endif
#endif
