/* task: runs one rank of a task, which continues, translates or scores its share of the lines of a file.
 *
 * Ranks  are independent: no collective, no rendezvous
 * Same   the output of a line does not depend on other lines: line i is continued with the seed + i
 *        (engine/generate/generate.h), so the whole equals that of `dtrun-engine generate --input` or `score`
 * Stop   SIGTERM (engine/channel/events.h) ends the rank between two passes or lines; the unfinished part
 *        is not sent and stays missing
 * Errors those of generate/; *err is required, and has been sent as `failed`
 */
#ifndef DT_ENGINE_TASK_TASK_H
#define DT_ENGINE_TASK_TASK_H

#include "base/strbuf.h"
#include "engine/channel/events.h"
#include "engine/generate/generate.h"
#include "recipes/plan/plan.h"

/* share: selects the lines of a task (recipes/plan/plan.h) that one rank processes.
 *
 * The missing parts are assigned by descending weight, each to the rank with the least work so far, so that
 * no rank is left with the long lines. A part is never split between ranks, so no rank waits for another; the
 * parts of a rank that died are missing, and the next attempt processes them.
 *
 * Ownership  a zeroed share can be released
 * Errors     DT_ERR_CORRUPT: the number of lines in the file differs from the plan's
 */

typedef struct dt_task_share {
    dt_strbuf text;   /* the selected lines, concatenated, as in the file */
    int64_t *numbers; /* [count] number of each line in the file, from 0, ascending */
    int64_t count;
} dt_task_share;

/* Select the lines of rank `rank`. text: contents of the whole file. */
dt_status dt_task_share_take(dt_task_share *out, const dt_plan_task *task, const dt_strbuf *text,
                             int64_t rank, int64_t world_size, dt_error *err);
void dt_task_share_release(dt_task_share *share);

/* From the plan's arguments; the task sets the files, the checkpoint, the device and the rest. */
typedef struct dt_task_how {
    dt_text_rules rules; /* rules of the generate command */
    int64_t batch;
    dt_dtype precision;
} dt_task_how;

dt_status dt_task_run(const dt_plan *plan, int64_t rank, const dt_task_how *how, dt_events *events,
                      dt_error *err);

#endif
