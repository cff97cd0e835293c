/* runs: opens the run of a command, and converts runs to JSON and text.
 *
 * Ownership  strings live in the arena of the call
 */
#ifndef DT_RUNNER_VIEW_RUNS_H
#define DT_RUNNER_VIEW_RUNS_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/term/term.h"
#include "runner/view/runs/progress.h"
#include "store/store.h"

/* Opens the store and finds the run. An active run without a supervisor gets a new one; a failure
 * of that is only printed, since reading needs none. The caller closes *store. */
dt_status dt_runs_open(dt_store **store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err);

/* The same with an open store. */
dt_status dt_runs_find(dt_store *store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err);

/* Starts the supervisor of an active run that has none. Prints a failure and returns it. */
dt_status dt_runs_ensure(const dt_run *run, const dt_call *call);

/* The keys that lists, status and launch share: run, name, state, attempt, step, ... New
 * reference. */
json_t *dt_runs_to_json(const dt_run *run);
/* Adds "activity" to that object; the speed of a run that makes no steps becomes null. */
void dt_runs_add_activity(json_t *object, const dt_run *run, const dt_activity *activity);
/* "attempt 3 continues from step 40; attempt 2 failed: why", for the attempt at index `at`, from 1 on;
 * lives in the arena. */
const char *dt_runs_attempt_sentence(const dt_attempt *attempts, int64_t at, dt_arena *arena);
/* [{attempt, state, start_step, elapsed_seconds, reason}], oldest first. New reference. */
json_t *dt_runs_attempts_json(const dt_attempt *attempts, int64_t count);
/* The same as dt_runs_to_json with attempts, timing and nodes[{host, state, ranks[{rank, pid,
 * state, ...}]}]. */
dt_status dt_runs_status_json(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                              dt_error *err);

/* Writes the number of steps of the run: "2,000", or "40 epochs" until the engine has counted them;
 * "?" of a command, which does not tell.
 * Returns buf. */
const char *dt_runs_total(char *buf, size_t size, const dt_run *run);
/* Returns whether the run is a command. */
bool dt_runs_is_command(const dt_run *run);
/* Returns "1,080 of 2,000" with " of " between; of a command whose total is unknown "1,080", or "-" without a step. */
const char *dt_runs_progress(char *buf, size_t size, const char *between, const dt_run *run);

/* Returns the architecture of its model, or NULL if unknown. */
const struct dt_architecture *dt_runs_architecture(const dt_run *run);
/* Returns the unit of its speed: "tokens/s" or "rows/s". Static. */
const char *dt_runs_speed(const dt_run *run);
/* Returns the label of dt_timing.tokens_per_second, with "(last)" or "(mean)". */
const char *dt_runs_timed_speed(const dt_run *run);

/* The state to show: what the run does, or for an active run "broken" if its supervisors end at
 * once, or "paused" if its supervisor is suspended by a signal. Lives as long as the activity. */
const char *dt_runs_shown_state(const dt_run *run, const dt_activity *activity);
/* Styles of a state and of an activity. */
dt_style dt_runs_run_style(const dt_run *run); /* bad for a run that has diverged */
dt_style dt_runs_style(dt_run_state state);
dt_style dt_runs_activity_style(const dt_run *run, const dt_activity *activity);

#endif
