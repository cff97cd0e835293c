/* smoke_int: what the checks of a smoke test share. */
#ifndef DT_SMOKE_INT_H
#define DT_SMOKE_INT_H

#include "runner/launch/preflight.h"
#include "runner/smoke/runs.h"
#include "runner/smoke/smoke.h"

typedef struct dt_smoke {
    const dt_smoke_wish *wish;
    dt_smoke_place place;
    const dt_recipe *asked; /* as it stands; borrowed */
    dt_recipe recipe;       /* shrunk */
    dt_preflight flight;    /* of that */
    dt_smoke_run trained;   /* the undisturbed run; row.id NULL: it did not come about */
    bool rows;              /* its samples are rows of numbers */
    bool pairs;             /* or pairs of sentences */
    int64_t ranks;          /* that train side by side: processes, or replicas of one */
    dt_arena *arena;
} dt_smoke;

/* Each: what it measured goes into out->figure, and a promise that is not kept into out->verdict
 * (dt_smoke_fail). An error is one more way not to keep it. */
typedef dt_status dt_smoke_look(dt_smoke_result *out, dt_smoke *smoke, dt_error *err);

/* --- check_basics.c: what one run shows */
dt_smoke_look dt_smoke_trains, dt_smoke_evaluates, dt_smoke_generates, dt_smoke_memory,
    dt_smoke_stops;
/* --- check_agreement.c: what two runs show */
dt_smoke_look dt_smoke_learns, dt_smoke_agrees, dt_smoke_resumes;
/* --- check_fault.c */
dt_status dt_smoke_survives(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                            dt_error *err);

/* What was measured, in the arena of the test. */
void dt_smoke_figure(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);
void dt_smoke_fail(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);
void dt_smoke_skip(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);

/* Whether the run has the losses of the undisturbed one, bit by bit; if not, the first step that differs
 * has failed in `out`. */
dt_status dt_smoke_same_bits(bool *same, dt_smoke_result *out, dt_smoke *smoke,
                             const dt_smoke_run *undisturbed, const dt_smoke_run *run,
                             dt_error *err);

#endif
