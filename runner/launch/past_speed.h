/* past_speed: finds the speed of finished runs on the same devices, to predict that of a new run.
 *
 * Same     same name of the first node, ranks on processors or on GPUs alike, and same precision
 * Rate     FLOPs of the model per second over the whole run, per GPU or per thread of a processor
 * Band     lowest and highest rate of the newest runs whose step has a quarter to four times as many FLOPs, widened
 *          by a tenth, or by a quarter if there are fewer than three; if there are none, of the runs nearest in
 *          size, half as fast to twice as fast
 */
#ifndef DT_RUNNER_LAUNCH_PAST_SPEED_H
#define DT_RUNNER_LAUNCH_PAST_SPEED_H

#include <stdbool.h>

#include "recipes/plan/plan.h"

typedef struct dt_past_speed {
    int64_t runs;     /* 0: none */
    bool like;        /* runs of about this size */
    double low, high; /* FLOPs per second of a GPU or of a thread */
} dt_past_speed;

/* Returns the GPUs, or processor threads, that compute in the plan. */
double dt_past_speed_devices(const dt_plan *plan);

/* Finds past runs; none if the store cannot be read. Does not create a store. */
void dt_past_speed_find(dt_past_speed *out, const dt_plan *plan, double step_flops,
                        dt_arena *arena);

#endif
