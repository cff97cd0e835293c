/* shard_int: declares what shard.c, shard_matrices.c and shard_step.c share. */
#ifndef DT_ENGINE_STRATEGY_SHARD_INT_H
#define DT_ENGINE_STRATEGY_SHARD_INT_H

#include "engine/strategy/shard.h"

/* Adjacent parameters of one slice and group, or a part of one matrix: the unit of an optimizer
 * call. */
typedef struct dt_shard_run {
    int unit, param;            /* unit, and first parameter of the run */
    int64_t start_elems, elems; /* range within the slice */
    int64_t state_start[DT_OPTIMIZER_STATES];
    dt_optimizer_group group;
} dt_shard_run;

/* The range of a parameter, relative to its first element that this rank holds, that is in this rank's slice; false:
 * none. *at: where it starts in the slice. */
bool dt_shard_part_in_slice(int64_t *first, int64_t *end, int64_t *at, const dt_shard *shard,
                            const dt_param *param);

/* Make the optimizer's argument for a run. */
dt_optimizer_part dt_shard_part_of(const dt_shard *shard, const dt_shard_run *run);

/* How the optimizer computes the direction of whole matrices, and in which type. Only if it has
 * `matrices`. */
const dt_whole_matrices *dt_shard_shaping(const dt_shard *shard);
dt_dtype dt_shard_work_dtype(const dt_shard *shard);

/* Update the matrices, with this step's factors (shard_matrices.c). */
dt_status dt_shard_step_matrices(dt_shard *shard, dt_error *err);

#endif
