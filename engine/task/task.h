/* task: one rank of a run that makes something of the lines of a file: it continues, translates or scores
 * its share of them (share.h) with a checkpoint, and tells what came of it (part.h).
 *
 * Ranks  know nothing of one another: no collective, no rendezvous
 * Same   what is made of a line does not depend on the lines beside it: line i is continued with the seed + i
 *        (generate/continue.h), so that the whole is that of `dtrun-engine generate --input` or `score`
 * Stop   SIGTERM (channel/stop.h) ends the rank between two passes or lines; the part that was begun is
 *        not told, and is missing
 * Errors those of generate/; *err is required, and has been sent as `failed`
 */
#ifndef DT_ENGINE_TASK_TASK_H
#define DT_ENGINE_TASK_TASK_H

#include "engine/channel/events.h"
#include "engine/generate/continue.h"
#include "engine/generate/score.h"
#include "engine/generate/translate.h"
#include "recipes/plan.h"

/* What the plan's arguments say; the files, the checkpoint, the device and the rest are the task's. */
typedef struct dt_task_how {
    dt_text_rules rules; /* of generate */
    int64_t batch;
    dt_dtype precision;
} dt_task_how;

dt_status dt_task_run(const dt_plan *plan, int64_t rank, const dt_task_how *how, dt_events *events,
                      dt_error *err);

#endif
