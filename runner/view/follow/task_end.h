/* task_end: follows a run of generate or score (runner/launch/task.h) and prints its output. */
#ifndef DT_RUNNER_VIEW_TASK_END_H
#define DT_RUNNER_VIEW_TASK_END_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "store/store.h"

/* Follows the run as --wait, --detach and --json ask, and sets the exit code. If the run finished,
 * *text is its output, which is printed unless a file was named for it. With --json *object is the
 * summary (new reference, printed by the caller), else NULL. */
dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err);

#endif
