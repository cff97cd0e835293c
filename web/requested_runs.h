/* runs_asked: the runs that a request is about: ?runs=ID,ID,... as paths name them, or ?group=NAME; or those of a list,
 * ?q=WORDS&state=STATE&sort=KEY&limit=N&offset=N. */
#ifndef DT_WEB_REQUESTED_RUNS_H
#define DT_WEB_REQUESTED_RUNS_H

#include "web/request.h"

#define DT_WEB_REQUESTED_RUNS_MAX 1000

/* Their ids, each once, in the arena. DT_ERR_USAGE: neither is given, or both, or too many; DT_ERR_NOT_FOUND. */
dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err);
/* A list's; what it points to lives as long as the request. DT_ERR_USAGE. */
dt_status dt_web_requested_search(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                                  dt_error *err);

#endif
