/* task: runs one rank of a task: it continues, translates or scores its share of the lines of a file
 * (share.h) with a checkpoint, and sends the output (part.h).
 *
 * Ranks  are independent: no collective, no rendezvous
 * Same   the output of a line does not depend on other lines: line i is continued with the seed + i
 *        (generate/continue.h), so the whole equals that of `dtrun-engine generate --input` or `score`
 * Stop   SIGTERM (channel/stop.h) ends the rank between two passes or lines; the unfinished part
 *        is not sent and stays missing
 * Errors those of generate/; *err is required, and has been sent as `failed`
 */
#ifndef DT_ENGINE_TASK_TASK_H
#define DT_ENGINE_TASK_TASK_H

#include "engine/channel/events.h"
#include "engine/generate/continue.h"
#include "engine/generate/score.h"
#include "engine/generate/translate.h"
#include "recipes/plan/plan.h"

/* From the plan's arguments; the task sets the files, the checkpoint, the device and the rest. */
typedef struct dt_task_how {
    dt_text_rules rules; /* rules of the generate command */
    int64_t batch;
    dt_dtype precision;
} dt_task_how;

dt_status dt_task_run(const dt_plan *plan, int64_t rank, const dt_task_how *how, dt_events *events,
                      dt_error *err);

#endif
