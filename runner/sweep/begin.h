/* begin: a point of a sweep becomes a run. */
#ifndef DT_SWEEP_BEGIN_H
#define DT_SWEEP_BEGIN_H

#include "runner/sweep/places.h"
#include "store/store.h"

/* `dtrun launch --detach` on the point's recipe, with the nodes of its place (places.h): fills in point->run, or point->problem where it was refused. */
dt_status dt_point_begin(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                         const dt_place *place, dt_arena *arena, dt_error *err);

/* `dtrun resume --detach` on its run, or another launch where that has no checkpoint: takes point->again back;
 * point->problem where it was refused. */
dt_status dt_point_resume(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                          const dt_place *place, dt_arena *arena, dt_error *err);

/* Points that were begun by somebody who did not live to write it down. */
dt_status dt_points_find(dt_sweep_group *group, dt_store *store, dt_arena *arena, dt_error *err);

#endif
