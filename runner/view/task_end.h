/* task_end: following a run of generate or score (runner/launch/task.h) to its end, and what came of it. */
#ifndef DT_RUNNER_VIEW_TASK_END_H
#define DT_RUNNER_VIEW_TASK_END_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* Follows it as --wait, --detach and --json say, and sets the exit code. Where it has finished, *text is what it
 * wrote, and *object with --json its summary (new reference, to be printed by the caller; else NULL); what
 * is not in a file that the call names is printed. */
dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err);

#endif
