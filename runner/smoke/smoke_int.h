/* smoke_int: what the checks of a smoke test share: its state folder, its runs, its results. */
#ifndef DT_RUNNER_SMOKE_SMOKE_INT_H
#define DT_RUNNER_SMOKE_SMOKE_INT_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"
#include "runner/launch/preflight.h"
#include "runner/smoke/smoke.h"
#include "store/curve.h"
#include "store/run.h"

/* place: creates a temporary state folder for a smoke test, and runs dtrun commands in it.
 *
 * Everything is done by the installed programs, as in a real run: dtrun launches; supervisor, agent and engine train;
 * the history has the results.
 * Ownership  close stops all runs in the folder, and removes the folder unless it is kept
 */

typedef struct dt_smoke_place {
    const char *folder, *dtrun;
    double limit_seconds; /* for one call */
    bool remove_runs;     /* on other nodes, at the end */
    dt_store *store;      /* NULL until the first run */
    dt_arena *arena;      /* borrowed */
} dt_smoke_place;

/* Creates a folder in TMPDIR and makes it XDG_STATE_HOME of this process and its children. */
dt_status dt_smoke_place_open(dt_smoke_place *out, double limit_seconds, dt_arena *arena,
                              dt_error *err);
/* DT_ERR_IO if a run could not be stopped or the folder not be removed; the folder then stays. */
dt_status dt_smoke_place_close(dt_smoke_place *place, bool keep, dt_error *err);

/* Runs one command (NULL-terminated words) with --json. Returns its exit code and its object (NULL:
 * none), owned by the caller. DT_ERR_IO if it cannot be run; DT_ERR_TIMEOUT. */
dt_status dt_smoke_place_call(json_t **out, int *exit_code, dt_smoke_place *place,
                              const char *const *words, dt_error *err);

/* --- runs.c */
/* Copies the recipe's workdir to NAME-workdir in the folder, so that the program writes nothing into the user's, and
 * makes it the workdir of *io. Checkpoints of earlier runs are left out: a program might continue from them.
 * DT_ERR_RECIPE: it is not here, or larger than workdir.max_mb. */
dt_status dt_smoke_place_copy(dt_recipe *io, const dt_smoke_place *place, const char *name,
                              dt_error *err);

/* runs: launches runs in the folder of a smoke test, and reads their history. */

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

/* The state and the helpers of checks. */

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

/* --- base.c */
/* With `lora` and a shrunk model: trains the shrunk model for a step, and makes its exported folder the recipe's
 * model.from. */
dt_status dt_smoke_base(dt_smoke *smoke, dt_error *err);

/* A check: sets out->figure to what it measured, or fails the verdict with dt_smoke_fail. An error
 * also fails the check. */
typedef dt_status dt_smoke_look(dt_smoke_result *out, dt_smoke *smoke, dt_error *err);

/* --- check_basics.c: checks of one run */
dt_smoke_look dt_smoke_trains, dt_smoke_evaluates, dt_smoke_generates, dt_smoke_memory,
    dt_smoke_stops;
/* --- check_masks.c: of conversations */
dt_smoke_look dt_smoke_masks;
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
/* --- check_command.c */
dt_smoke_look dt_smoke_continues, dt_smoke_ends_command;
/* --- check_fault.c */
dt_status dt_smoke_survives(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                            dt_error *err);

/* --- for several checks: runs.c, check_basics.c, check_agreement.c */

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
