/* part: what came of the lines of a share, told part by part, as the event `part` (channel/events.h).
 *
 * Lines are given in the order of the share. A part is told once its last line is there: in pieces, where
 * it is too long for one event, of which the last says so.
 */
#ifndef DT_ENGINE_TASK_PART_H
#define DT_ENGINE_TASK_PART_H

#include "engine/channel/events.h"
#include "engine/task/share.h"

typedef struct dt_task_parts {
    dt_events *events;
    const dt_plan_task *task;
    const dt_task_share *share;
    int64_t given;  /* lines of the share */
    dt_strbuf text; /* of the part so far */
    int64_t tokens;
    double log_likelihood;
    bool scores; /* the log-likelihood means something */
    double since_seconds;
} dt_task_parts;

void dt_task_parts_open(dt_task_parts *out, dt_events *events, const dt_plan_task *task,
                        const dt_task_share *share, bool scores);
void dt_task_parts_close(dt_task_parts *parts);

/* The next line's text, with its line break; tokens that were made or foretold: 0, nobody counted. */
dt_status dt_task_parts_add(dt_task_parts *parts, const char *text, size_t length, int64_t tokens,
                            double log_likelihood, dt_error *err);

#endif
