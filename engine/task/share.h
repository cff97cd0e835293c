/* share: selects the lines of a task (recipes/plan/plan.h) that one rank processes.
 *
 * The missing parts are assigned by descending weight, each to the rank with the least work so far, so that
 * no rank is left with the long lines. A part is never split between ranks, so no rank waits for another; the
 * parts of a rank that died are missing, and the next attempt processes them.
 *
 * Ownership  a zeroed share can be released
 * Errors     DT_ERR_CORRUPT: the number of lines in the file differs from the plan's
 */
#ifndef DT_ENGINE_TASK_SHARE_H
#define DT_ENGINE_TASK_SHARE_H

#include "base/strbuf.h"
#include "recipes/plan/plan.h"

typedef struct dt_task_share {
    dt_strbuf text;   /* the selected lines, concatenated, as in the file */
    int64_t *numbers; /* [count] number of each line in the file, from 0, ascending */
    int64_t count;
} dt_task_share;

/* Select the lines of rank `rank`. text: contents of the whole file. */
dt_status dt_task_share_take(dt_task_share *out, const dt_plan_task *task, const dt_strbuf *text,
                             int64_t rank, int64_t world_size, dt_error *err);
void dt_task_share_release(dt_task_share *share);

#endif
