/* task_run: whether the task of a run is to train, and what it is if not (recipes/plan.h). */
#ifndef DT_FOLDER_TASK_RUN_H
#define DT_FOLDER_TASK_RUN_H

#include "recipes/plan.h"
#include "store/store.h"

/* "generate", "score"; NULL: it trains. Static. */
const char *dt_task_of(const dt_run *run);
/* The plan of its newest attempt, from the run's folder. */
dt_status dt_task_plan(dt_plan *out, const dt_run *run, dt_arena *arena, dt_error *err);
/* DT_ERR_USAGE for a run whose task is not to train, naming the one that it is of; `what` is what it cannot:
 * "be forked". */
dt_status dt_task_refuse(const dt_run *run, const char *what, dt_arena *arena, dt_error *err);

#endif
