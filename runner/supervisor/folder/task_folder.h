/* task_folder: what a run whose task is not to train (recipes/plan.h) has in its folder: what came of its
 * lines, and how that becomes the file that was asked for.
 *
 *   input.txt, target.txt    copies of what was given
 *   parts/part-00000012      what came of part 12: whole, or not there
 *   parts/part-00000012.partial   ... of which more is to come
 *   output.txt               all of it, where nobody named a file
 *
 * A part is written as its event is stored, before the number of the next event is: who comes after a crash
 * is told the same piece again, and writes it to the same place. So a part that is there is told of, and one that
 * was told of is there.
 *
 * Threads  any, one at a time for a run
 * Errors   DT_ERR_IO; a full disk leaves what there was
 */
#ifndef DT_FOLDER_TASK_FOLDER_H
#define DT_FOLDER_TASK_FOLDER_H

#include "recipes/plan.h"

#define DT_TASK_INPUT  "input.txt"
#define DT_TASK_TARGET "target.txt"
#define DT_TASK_OUTPUT "output.txt"

/* A piece of a part, from byte `offset` on; last: it is whole then, and on the disk. Nothing where the part is
 * there already. */
dt_status dt_task_folder_write(const char *folder, int64_t part, int64_t offset, bool last,
                               const char *bytes, size_t length, dt_error *err);

/* task->done: the parts that are there. */
dt_status dt_task_folder_look(dt_plan_task *task, const char *folder, dt_arena *arena,
                              dt_error *err);
/* Lines of the parts in task->done. */
int64_t dt_task_lines_done(const dt_plan_task *task);

/* All parts in their order become task->output, which is whole or as it was; of what is scored with its total, as
 * `dtrun-engine score` prints it, and its loss a token in *loss (else NaN). Good where it was done before. DT_ERR_NOT_FOUND: a part is missing;
 * DT_ERR_IO: it cannot be written, or another file has come there and task->replace is false. */
dt_status dt_task_folder_finish(double *loss, const dt_plan *plan, const char *folder,
                                dt_error *err);
/* Then nobody needs parts, copies and the checkpoint. */
void dt_task_folder_clear(const dt_plan *plan, const char *folder);

#endif
