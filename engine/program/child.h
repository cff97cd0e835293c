/* child: starts the user's program with its words (words.h), environment and folder.
 *
 * Environment  that of this process, then the variables of torchrun's contract and dtrun's, then the recipe's `env`.
 *              "${env:NAME}" is the value that the launch had: the supervisor sends it as DTRUN_SECRET_NAME, which
 *              the program does not get
 * GPUs         CUDA_VISIBLE_DEVICES has all GPUs that the run uses on the node, since programs choose theirs by
 *              LOCAL_RANK
 */
#ifndef DT_ENGINE_PROGRAM_CHILD_H
#define DT_ENGINE_PROGRAM_CHILD_H

#include <sys/types.h>

#include "recipes/plan/plan.h"

/* Makes the recipe's folder the current one. */
dt_status dt_child_enter(const dt_recipe *recipe, dt_error *err);
/* Starts the program in the current folder, in a process group of its own; it has been executed when this returns. `out` is its stdout
 * (-1: that of this process), `errors` its stderr, `port` is MASTER_PORT. */
dt_status dt_child_start(pid_t *pid, const dt_plan *plan, int64_t rank, int64_t port, int out,
                         int errors, dt_arena *arena, dt_error *err);

#endif
