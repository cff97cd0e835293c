/* sweep_int: what the driver of a sweep and its tests use: the rule of early stops, and places on nodes. */
#ifndef DT_RUNNER_SWEEP_SWEEP_INT_H
#define DT_RUNNER_SWEEP_SWEEP_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/queue/queue.h"
#include "runner/sweep/group.h"
#include "store/store.h"

/* halving: decides which run of a sweep is stopped early. A pure function of what the runs have reached.
 *
 * Rungs      after, 2 after, 4 after, ... steps. The value of a run at a rung is the last metric up to that step
 * Rule       of all runs that have reached a rung, including ended ones, the best `keep` (rounded up, at least one)
 *            continue; the others are stopped. A run that was cut at an earlier rung does not compete, even if it
 *            reaches the rung before it ends. A run is cut only if a run that was not cut is better at the rung, so
 *            the best of those always continues. The rule is applied at every look, so that runs are judged by the
 *            runs before them: successive halving (Jamieson and Talwalkar 2016) without waiting for each other
 *            (Li et al. 2018)
 * Ties       the earlier point wins; a value that is not a number is the worst
 */

typedef struct dt_halving_run {
    double value; /* value at the rung; may be NaN */
    bool there;   /* the run has reached the rung */
    int64_t cut;  /* rung at which it was cut; 0: not cut */
} dt_halving_run;

/* True if the run `which`, which was not cut before, is stopped at the rung. */
bool dt_halving_cuts(const dt_halving_run *runs, int64_t count, int64_t which, int64_t rung,
                     double keep);

/* places: the place of a point, by the rules of the queue.
 *
 * It is written into the point's recipe, as `nodes: [gpu-a gpus=2 first_gpu=4]`, and so into its run: what is in use comes
 * from the plans of all runs that have not ended. As written if the nodes are of Slurm, or as dt_queue_place_take says.
 */

/* *nodes: "nodes=[...]", in the arena; NULL: as in the recipe. Release *out with dt_queue_place_release, once the run
 * exists. */
dt_status dt_point_place(dt_queue_place *out, const char **nodes, const dt_sweep_group *group,
                         int64_t index, dt_store *store, dt_arena *arena, dt_error *err);

#endif
