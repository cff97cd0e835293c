/* task_parts: divides the lines of a task (recipes/plan/plan.h) into parts of about equal work.
 *
 * The parts depend on the lines and on `line_weight` alone, so every number of ranks has the same ones.
 * A part has more weight than the others only if its last line is long.
 */
#ifndef DT_RUNNER_LAUNCH_TASK_PARTS_H
#define DT_RUNNER_LAUNCH_TASK_PARTS_H

#include "base/strbuf.h"
#include "recipes/plan/plan.h"

#define DT_TASK_PARTS \
    1024 /* at most; a multiple of most numbers of ranks, so that they end together */

/* Counts the lines of *out and cuts them into parts; an empty file has no parts. target: translations of the
 * lines, or NULL. The weight of a line is its bytes, in both files, plus line_weight (at least 1). */
void dt_task_parts_cut(dt_plan_task *out, const dt_strbuf *input, const dt_strbuf *target,
                       int64_t line_weight, dt_arena *arena);

#endif
