/* results: the results of evaluation tasks (engine/evaluation/) that the history has of runs, and a table of them.
 *
 *   task       metric    rows  tiny@400          tuned@200
 *   arc        acc        200  0.2450 ± 0.0305   0.4350 ± 0.0351
 *              acc_norm        0.2550 ± 0.0309   0.4400 ± 0.0352
 *
 * Stored     as events (store/evaluation.c): of a rank in training, else of `dtrun evaluate`
 * Ownership  everything lives in the arena that is passed
 */
#ifndef DT_RUNNER_VIEW_RUNS_RESULTS_H
#define DT_RUNNER_VIEW_RUNS_RESULTS_H

#include "base/json.h"
#include "engine/evaluation/evaluation.h"
#include "runner/term/term.h"
#include "store/run.h"
#include "store/store.h"

typedef struct dt_task_results {
    int64_t attempt, step, time_ms;
    dt_evaluation_results results;
} dt_task_results;

/* Lists those of a run, one of each step: the newest result of each task. Oldest step first. */
dt_status dt_results_list(dt_task_results **out, int64_t *count, dt_store *store, const char *run,
                          dt_arena *arena, dt_error *err);
/* The newest result of each task, of any step. */
dt_status dt_results_newest(dt_task_results *out, dt_store *store, const char *run, dt_arena *arena,
                            dt_error *err);

/* [{"attempt", "step", "time_ms", "tasks": {...}}], as dt_evaluation_to_json has tasks. New reference. */
json_t *dt_results_to_json(const dt_task_results *list, int64_t count);

/* A column of the table. */
typedef struct dt_results_column {
    const char *title;
    const dt_evaluation_results *results;
} dt_results_column;

/* Adds the table, or nothing if no column has a result. Tasks are in the order of the first column that has them. */
void dt_results_add(dt_strbuf *out, const dt_term *term, const dt_results_column *columns,
                    size_t count, int indent, dt_arena *arena);

#endif
