/* part: sends the output for the lines of a share, part by part, as events `part` (channel/events.h).
 *
 * Lines are added in the order of the share. A part is sent once its last line is added; if it is too long
 * for one event, in several pieces, the last of which is marked.
 */
#ifndef DT_ENGINE_TASK_PART_H
#define DT_ENGINE_TASK_PART_H

#include "engine/channel/events.h"
#include "engine/task/share.h"

typedef struct dt_task_parts {
    dt_events *events;
    const dt_plan_task *task;
    const dt_task_share *share;
    int64_t given;  /* number of lines added so far */
    int64_t part;   /* the current part */
    dt_strbuf text; /* output of the current part */
    int64_t tokens;
    double log_likelihood;
    bool scores; /* scoring: log_likelihood is meaningful */
    double since_seconds;
} dt_task_parts;

void dt_task_parts_open(dt_task_parts *out, dt_events *events, const dt_plan_task *task,
                        const dt_task_share *share, bool scores);
void dt_task_parts_close(dt_task_parts *parts);

/* Add the output for the next line, with its line break. tokens: generated or scored; 0: not
 * counted. */
dt_status dt_task_parts_add(dt_task_parts *parts, const char *text, size_t length, int64_t tokens,
                            double log_likelihood, dt_error *err);

#endif
