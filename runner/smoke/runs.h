/* runs: launches runs in the folder of a smoke test, and reads their history. */
#ifndef DT_SMOKE_RUNS_H
#define DT_SMOKE_RUNS_H

#include "runner/smoke/place.h"

typedef struct dt_smoke_run {
    dt_run row;
    dt_recipe recipe; /* of the launch; borrowed */
    double seconds;   /* from the launch to the end of the run */
} dt_smoke_run;

typedef struct dt_smoke_line {
    dt_metric *points; /* by step */
    int64_t count;
} dt_smoke_line;

/* Launches a run and waits for its end, with `planted`, "NAME=VALUE" or NULL, in its environment.
 * DT_ERR_IO with the reason if the run does not finish. */
dt_status dt_smoke_train(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, const char *planted, dt_error *err);
/* Launches a run and waits for its first step. Errors as above. */
dt_status dt_smoke_begin(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, dt_error *err);

/* Launches a run and does not wait for it. Errors as above. */
dt_status dt_smoke_launch(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                          const dt_recipe *recipe, dt_error *err);
/* Waits until the run has ended or `seen`, which is called with a short-lived arena, returns true. DT_ERR_TIMEOUT after
 * the time limit; io->row is current then too. */
typedef bool dt_smoke_seen(dt_smoke_place *place, const dt_run *row, void *context,
                           dt_arena *arena);
dt_status dt_smoke_await(dt_smoke_run *io, dt_smoke_place *place, dt_smoke_seen *seen,
                         void *context, dt_error *err);

/* Reads a metric of the run. */
dt_status dt_smoke_line_read(dt_smoke_line *out, const dt_smoke_place *place,
                             const dt_smoke_run *run, const char *metric, dt_error *err);

#endif
