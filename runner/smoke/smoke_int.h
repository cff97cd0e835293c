/* smoke_int: declares the state and helpers that the checks of a smoke test share. */
#ifndef DT_SMOKE_INT_H
#define DT_SMOKE_INT_H

#include "runner/launch/preflight.h"
#include "runner/smoke/runs.h"
#include "runner/smoke/smoke.h"

typedef struct dt_smoke {
    const dt_smoke_wish *wish;
    dt_smoke_place place;
    const dt_recipe *asked; /* the original recipe; borrowed */
    dt_recipe recipe;       /* shrunk */
    dt_preflight flight;    /* of the shrunk recipe */
    dt_smoke_run trained;   /* the undisturbed run; row.id NULL: it failed */
    bool rows;              /* its samples are rows of numbers */
    bool pairs;             /* its samples are pairs of sentences */
    bool command;           /* it runs another program */
    int64_t ranks;          /* that train together: processes, or replicas in one process */
    dt_arena *arena;
} dt_smoke;

/* A check: sets out->figure to what it measured, or fails the verdict with dt_smoke_fail. An error
 * also fails the check. */
typedef dt_status dt_smoke_look(dt_smoke_result *out, dt_smoke *smoke, dt_error *err);

/* --- check_basics.c: checks of one run */
dt_smoke_look dt_smoke_trains, dt_smoke_evaluates, dt_smoke_generates, dt_smoke_memory,
    dt_smoke_stops;
/* --- check_agreement.c: comparisons of two runs */
dt_smoke_look dt_smoke_learns, dt_smoke_agrees, dt_smoke_resumes;
/* --- check_command.c: checks of a recipe with a command */
dt_smoke_look dt_smoke_starts, dt_smoke_measures, dt_smoke_saves;
/* Conditions that a check waits for. */
typedef struct dt_smoke_awaited {
    int64_t attempt; /* an earlier one does not count, a later one ends the wait */
    bool metric, checkpoint;
    double up_seconds; /* when all ranks had started; 0: not yet */
} dt_smoke_awaited;
/* Whether all ranks have started and have shown what a dt_smoke_awaited names. */
dt_smoke_seen dt_smoke_is_there;
/* Starts a run in a copy of the folder, and waits until dt_smoke_is_there, or it has ended. DT_ERR_TIMEOUT. */
dt_status dt_smoke_begin_command(dt_smoke_run *out, dt_smoke_awaited *what, dt_smoke *smoke,
                                 const char *name, dt_error *err);
/* Returns whether the run has ended otherwise than by itself. */
bool dt_smoke_has_failed(const dt_run *row);
/* Returns whether the first run has shown a metric, so that a later one will too. */
bool dt_smoke_shows_metrics(const dt_smoke *smoke);
/* Returns the least step of the attempt's points, and their number; INT64_MAX if it has none. */
int64_t dt_smoke_first_step(int64_t *points, dt_smoke_place *place, const char *run,
                            int64_t attempt, dt_arena *arena);
/* --- check_command_ends.c */
dt_smoke_look dt_smoke_continues, dt_smoke_ends_command;
/* --- check_fault.c */
dt_status dt_smoke_survives(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                            dt_error *err);

/* Set the verdict and its text, which lives in the arena of the test. */
void dt_smoke_figure(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);
void dt_smoke_fail(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);
void dt_smoke_skip(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
    DT_PRINTF(3, 4);

/* Stops the run, which must be started, and checks that no process is left. */
dt_status dt_smoke_stop_run(dt_smoke_result *out, dt_smoke *smoke, dt_smoke_run *run,
                            dt_error *err);

/* Checks that the run has the same losses as the undisturbed one, bit for bit. If not, fails `out`
 * with the first step that differs. */
dt_status dt_smoke_same_bits(bool *same, dt_smoke_result *out, dt_smoke *smoke,
                             const dt_smoke_run *undisturbed, const dt_smoke_run *run,
                             dt_error *err);

#endif
