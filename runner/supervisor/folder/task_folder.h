/* task_folder: the task of a run that does not train, and the results in its folder.
 *
 *   input.txt, target.txt    copies of the input
 *   parts/part-00000012      result of part 12, complete
 *   parts/part-00000012.partial   result of part 12, incomplete
 *   output.txt               everything, if no output file was named
 *
 * A part is written when its event is stored, before the number of the next event is stored. After a crash the
 * same piece arrives again and is written to the same place. So a part exists if and only if it was reported.
 *
 * Threads  any, but only one at a time per run
 * Errors   DT_ERR_IO; on a full disk the existing files are unchanged
 */
#ifndef DT_RUNNER_SUPERVISOR_FOLDER_TASK_FOLDER_H
#define DT_RUNNER_SUPERVISOR_FOLDER_TASK_FOLDER_H

#include "engine/evaluation/evaluation.h"
#include "recipes/plan/plan.h"
#include "store/run.h"

/* task_run: finds the task of a run that is not a training run (recipes/plan/plan.h). */

/* Returns "generate", "score", "evaluate" or "command" (static); NULL: the run trains. */
const char *dt_task_of(const dt_run *run);
/* Reads the plan of the run's newest attempt from its folder. */
dt_status dt_task_plan(dt_plan *out, const dt_run *run, dt_arena *arena, dt_error *err);
/* Returns whether the run processes lines: to generate, to score or to evaluate. */
bool dt_task_of_lines(const dt_run *run);
/* Returns DT_ERR_USAGE for a run whose task is not training, naming the run whose checkpoint it
 * uses. what: what it cannot do, as in "be forked". */
dt_status dt_task_refuse(const dt_run *run, const char *what, dt_arena *arena, dt_error *err);

#define DT_TASK_INPUT  "input.txt"
#define DT_TASK_TARGET "target.txt"
#define DT_TASK_OUTPUT "output.txt"

/* Writes a piece of a part at byte `offset`; last: the part is then complete, and its content synced. Does
 * nothing if the part is complete already. */
dt_status dt_task_folder_write(const char *folder, int64_t part, int64_t offset, bool last,
                               const char *bytes, size_t length, dt_error *err);

/* Sets task->done to the complete parts. */
dt_status dt_task_folder_look(dt_plan_task *task, const char *folder, dt_arena *arena,
                              dt_error *err);
/* Returns the number of lines of the parts in task->done. */
int64_t dt_task_lines_done(const dt_plan_task *task);

/* Merges all parts in order into task->output, atomically. For scores it adds the totals as
 * `dtrun-engine score` prints them, and sets *loss to the loss per token (else NaN). Succeeds if
 * it was done before. DT_ERR_NOT_FOUND: a part is missing; DT_ERR_IO: the output cannot be
 * written, or another file exists there and task->replace is false. */
dt_status dt_task_folder_finish(double *loss, const dt_plan *plan, const char *folder,
                                dt_error *err);
/* Removes parts, copies and the checkpoint after that. */
void dt_task_folder_clear(const dt_plan *plan, const char *folder);

/* Stores the metrics of evaluation tasks with a checkpoint of the run, in its history (store/evaluation.c). */
dt_status dt_task_results_store(dt_store *store, const dt_run *run, int64_t step,
                                const dt_evaluation_results *results, dt_error *err);

#endif
