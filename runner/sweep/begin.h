/* begin: launches or resumes a point of a sweep. */
#ifndef DT_SWEEP_BEGIN_H
#define DT_SWEEP_BEGIN_H

#include "runner/sweep/places.h"
#include "store/store.h"

/* Runs `dtrun launch --detach` on the point's recipe, with the nodes of its place (places.h).
 * Fills in point->run, or point->problem if the launch was refused. */
dt_status dt_point_begin(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                         const dt_place *place, dt_arena *arena, dt_error *err);

/* Runs `dtrun resume --detach` on its run, or another launch if the run has no checkpoint.
 * Clears point->again; sets point->problem if it was refused. */
dt_status dt_point_resume(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                          const dt_place *place, dt_arena *arena, dt_error *err);

/* Finds runs of points that were launched by a driver that died before it could record them. */
dt_status dt_points_find(dt_sweep_group *group, dt_store *store, dt_arena *arena, dt_error *err);

#endif
