/* requested_runs: finds the runs that a request names: ?runs=ID,ID,... or ?group=NAME; or those of a list,
 * ?q=WORDS&state=STATE&sort=KEY&limit=N&offset=N. */
#ifndef DT_WEB_REQUESTED_RUNS_H
#define DT_WEB_REQUESTED_RUNS_H

#include "web/request.h"

#define DT_WEB_REQUESTED_RUNS_MAX 1000

/* Returns their ids, each once, in the arena. DT_ERR_USAGE: neither parameter is given, or both, or too
 * many runs; DT_ERR_NOT_FOUND. */
dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err);
/* Reads the parameters of a list; *out borrows from the request. DT_ERR_USAGE. */
dt_status dt_web_requested_search(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                                  dt_error *err);

#endif
