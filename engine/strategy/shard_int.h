/* shard_int: what shard.c, shard_matrices.c and shard_step.c share. */
#ifndef DT_ENGINE_STRATEGY_SHARD_INT_H
#define DT_ENGINE_STRATEGY_SHARD_INT_H

#include "engine/strategy/shard.h"

/* Neighbouring parameters of one slice and group, or a part of one matrix: one call of the
 * optimizer. */
typedef struct dt_shard_run {
    int unit, param;            /* param: the first one */
    int64_t start_elems, elems; /* in the slice */
    int64_t state_start[DT_OPTIMIZER_STATES];
    dt_optimizer_group group;
} dt_shard_run;

/* What the optimizer steps of it. */
dt_optimizer_part dt_shard_part_of(const dt_shard *shard, const dt_shard_run *run);

/* How whole matrices are shaped, and in which type; where the optimizer has `matrices`. */
const dt_whole_matrices *dt_shard_shaping(const dt_shard *shard);
dt_dtype dt_shard_work_dtype(const dt_shard *shard);

/* shard_matrices.c: of this step, by its factors. */
dt_status dt_shard_step_matrices(dt_shard *shard, dt_error *err);

#endif
