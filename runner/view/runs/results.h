/* results: what evaluations have left in the history of runs, as tables for people and as JSON: results of evaluation
 * tasks (engine/evaluation/), samples, and the classes that a classifier predicts.
 *
 *   task       metric    rows  tiny@400          tuned@200
 *   arc        acc        200  0.2450 ± 0.0305   0.4350 ± 0.0351
 *              acc_norm        0.2550 ± 0.0309   0.4400 ± 0.0352
 *
 * Stored     as events (store/evaluation.c, sample.c, confusion.c): of a rank in training; tasks also of `dtrun evaluate`
 * Ownership  everything lives in the arena that is passed
 */
#ifndef DT_RUNNER_VIEW_RUNS_RESULTS_H
#define DT_RUNNER_VIEW_RUNS_RESULTS_H

#include "base/error.h"
#include "base/json.h"
#include "engine/evaluation/evaluation.h"
#include "runner/term/term.h"
#include "store/event.h"
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

/* --- samples: texts that a run has generated for the prompts of 'evaluate.samples' (samples.c)
 *
 *   step 400
 *
 *   the quick
 *   | brown fox jumps
 *   100 tokens, cut at the limit
 */

/* Adds the texts, with a heading for each step. */
void dt_samples_add(dt_strbuf *out, const dt_term *term, const dt_store_sample *samples,
                    int64_t count, dt_arena *arena);
/* [{"attempt", "step", "time_ms", "index", "prompt", "text", "tokens", "ended"}]. New reference. */
json_t *dt_samples_to_json(const dt_store_sample *samples, int64_t count);

/* --- confusion: the rows of each class by the class that a classifier predicts (confusion.c)
 *
 *   class   0   1   2   rows   right
 *   0      31   2   0     33  93.9 %
 *
 * With more classes than DT_CONFUSION_COLUMNS, a line has the class that it is most often taken for instead.
 */

#define DT_CONFUSION_COLUMNS 16

/* Adds the table of one step. DT_ERR_CORRUPT if the history has no square table of numbers. */
dt_status dt_confusion_add(dt_strbuf *out, const dt_term *term, const dt_store_confusion *of,
                           dt_arena *arena, dt_error *err);
/* [{"attempt", "step", "time_ms", "counts"}]. New reference. */
json_t *dt_confusions_to_json(const dt_store_confusion *list, int64_t count);

#endif
