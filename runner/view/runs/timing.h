/* timing: computes the elapsed time, the time left and the speed of a run from the store.
 *
 * Formula    left = steps left / (steps per second over the last tenth of the run, at least 100
 *            steps), minus the time since the newest point. Pauses for evaluations and
 *            checkpoints that fall into the window count, as they will come again. Once the next
 *            point is overdue, the time left stays constant.
 * Unknown    speed and time left are NaN while no step can come, for example while a node does not respond
 * Units      seconds; NaN if unknown
 */
#ifndef DT_RUNNER_VIEW_TIMING_H
#define DT_RUNNER_VIEW_TIMING_H

#include "store/activity.h"

typedef struct dt_timing {
    dt_activity activity;
    double elapsed_seconds; /* of all attempts, without the time between them */
    double eta_seconds;
    double tokens_per_second; /* mean of an ended run; of the newest steps of an active one */
    const char *curve;        /* the curve of progress (store/activity.h) */
    double lines_per_second;  /* of an active run that processes lines, else NaN */
} dt_timing;

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err);

#endif
