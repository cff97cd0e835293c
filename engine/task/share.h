/* share: the lines of a task (recipes/plan.h) that one rank makes something of.
 *
 * Of the parts that are missing, in their order, rank r of W takes the r-th and every W-th after it. Each is
 * whole in one share, so that nobody waits for anybody; whoever has died is made up for by an attempt
 * to which its parts are missing.
 *
 * Ownership  a zeroed one may be released
 * Errors     DT_ERR_CORRUPT: the file has not as many lines as the plan says
 */
#ifndef DT_ENGINE_TASK_SHARE_H
#define DT_ENGINE_TASK_SHARE_H

#include "base/strbuf.h"
#include "recipes/plan.h"

typedef struct dt_task_share {
    dt_strbuf text;   /* the lines, one after another, as they stand in the file */
    int64_t *numbers; /* [count] which line of the file each is, from 0 */
    int64_t count;
} dt_task_share;

/* text: of the whole file. */
dt_status dt_task_share_take(dt_task_share *out, const dt_plan_task *task, const dt_strbuf *text,
                             int64_t rank, int64_t world_size, dt_error *err);
void dt_task_share_release(dt_task_share *share);

#endif
