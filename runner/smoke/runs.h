/* runs: a recipe trained in the place of a smoke test, and what its history says of it. */
#ifndef DT_SMOKE_RUNS_H
#define DT_SMOKE_RUNS_H

#include "runner/smoke/place.h"

typedef struct dt_smoke_run {
    dt_run row;
    dt_recipe recipe; /* that it was launched with; borrowed */
    double seconds;   /* that the launch took, from the command to its end */
} dt_smoke_run;

typedef struct dt_smoke_line {
    dt_metric *points; /* by step */
    int64_t count;
} dt_smoke_line;

/* `dtrun launch`, to its end, with what is planted in its environment, "NAME=VALUE" (NULL: nothing). A run that did not finish is
 * DT_ERR_IO with the reason. */
dt_status dt_smoke_train(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, const char *planted, dt_error *err);
/* The same until it has done a step. */
dt_status dt_smoke_begin(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, dt_error *err);

/* A metric of the run as one line. */
dt_status dt_smoke_line_read(dt_smoke_line *out, const dt_smoke_place *place,
                             const dt_smoke_run *run, const char *metric, dt_error *err);

#endif
