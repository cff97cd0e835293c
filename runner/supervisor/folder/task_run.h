/* task_run: finds the task of a run that is not a training run (recipes/plan/plan.h). */
#ifndef DT_FOLDER_TASK_RUN_H
#define DT_FOLDER_TASK_RUN_H

#include "recipes/plan/plan.h"
#include "store/store.h"

/* Returns "generate", "score" or "command" (static); NULL: the run trains. */
const char *dt_task_of(const dt_run *run);
/* Reads the plan of the run's newest attempt from its folder. */
dt_status dt_task_plan(dt_plan *out, const dt_run *run, dt_arena *arena, dt_error *err);
/* Returns whether the run processes lines, to generate or to score. */
bool dt_task_of_lines(const dt_run *run);
/* Returns DT_ERR_USAGE for a run whose task is not training, naming the run whose checkpoint it
 * uses. what: what it cannot do, as in "be forked". */
dt_status dt_task_refuse(const dt_run *run, const char *what, dt_arena *arena, dt_error *err);

#endif
