/* matrices: the hidden matrices of a recipe's model, where its optimizer steps them whole: what they
 * take, and who of several ranks shapes which.
 *
 * Divided    ddp: rank by rank in the order of the parameters, by FLOPs, so that every rank has as many
 *            as it can. fsdp: each rank those of which it holds a part. dp: one process has all
 */
#ifndef DT_RECIPES_MATRICES_H
#define DT_RECIPES_MATRICES_H

#include "base/arena.h"
#include "base/error.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_matrices {
    int64_t elems;      /* of all; 0 where none is stepped whole */
    int64_t work_bytes; /* the most that one takes while it is shaped */
    double flops;       /* of all, in a step */
} dt_matrices;

void dt_matrices_count(dt_matrices *out, const dt_recipe *recipe);

/* FLOPs of a step of the rank that has most of them. */
dt_status dt_matrices_rank_flops(double *out, const dt_recipe *recipe, int64_t world_size,
                                 dt_arena *arena, dt_error *err);

/* Whose of `world_size` ranks a matrix is that costs `flops`, where those before it cost `before`, and
 * `all` all of them. */
int64_t dt_matrix_owner(double before, double flops, double all, int64_t world_size);

#ifdef __cplusplus
}
#endif
#endif
