/* tail: keeps the last lines that a rank printed, for the report of its death. */
#ifndef DT_RUNNER_AGENT_RANK_TAIL_H
#define DT_RUNNER_AGENT_RANK_TAIL_H

#include <stddef.h>

#include "base/json.h"

#define DT_TAIL_LINES 50

typedef struct dt_tail {
    char *lines[DT_TAIL_LINES]; /* ring buffer; NULL: unused */
    size_t next;
} dt_tail;

void dt_tail_add(dt_tail *tail, const char *text); /* copies; long lines are truncated */
void dt_tail_release(dt_tail *tail);

/* Returns a new reference: an array of strings, oldest first. */
json_t *dt_tail_to_json(const dt_tail *tail);

#endif
