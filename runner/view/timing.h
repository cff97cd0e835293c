/* timing: how long a run has taken and will take, from what the store knows.
 *
 * Formula    left = steps left / (steps per second over the last tenth of the run, at least 100
 *            steps), minus the time since the newest point. Pauses for evaluations and
 *            checkpoints that fall into the window count, as they will come again. Once the next
 *            point is due and does not come, the time left stands.
 * Unknown    speed and time left are NaN while no step can come, as when a node does not answer
 * Units      seconds; NaN where it cannot be told
 */
#ifndef DT_RUNNER_VIEW_TIMING_H
#define DT_RUNNER_VIEW_TIMING_H

#include "store/activity.h"

typedef struct dt_timing {
    dt_activity activity;
    double elapsed_seconds; /* of all attempts, without what lay between them */
    double eta_seconds;
    double tokens_per_second; /* of the whole run once it has ended, of the newest steps before */
} dt_timing;

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err);

#endif
