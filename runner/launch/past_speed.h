/* past_speed: what finished runs on the same devices have done, for what a new one may take.
 *
 * Same     the first node's name, its ranks on processors or on GPUs as here, and the precision
 * Rate     FLOPs of the model a second, whole runs, of one GPU or of one thread of a processor
 * Band     the lowest and the highest rate of the newest runs whose step has a quarter to four times as
 *          many FLOPs, a tenth further each way, a quarter where they are fewer than three; else of
 *          those nearest in size, half as fast and twice as fast
 */
#ifndef DT_RUNNER_LAUNCH_PAST_SPEED_H
#define DT_RUNNER_LAUNCH_PAST_SPEED_H

#include <stdbool.h>

#include "recipes/plan.h"

typedef struct dt_past_speed {
    int64_t runs;     /* 0: there are none */
    bool like;        /* of about this size */
    double low, high; /* FLOPs a second of a GPU or of a thread */
} dt_past_speed;

/* GPUs, or threads of processors, that compute in the plan. */
double dt_past_speed_devices(const dt_plan *plan);

/* A store that cannot be read has no runs. Makes none where there is none. */
void dt_past_speed_find(dt_past_speed *out, const dt_plan *plan, double step_flops,
                        dt_arena *arena);

#endif
