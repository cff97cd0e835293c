/* runs_asked: reads which runs a request asks for: ?runs=ID,ID,... (as in paths) or ?group=NAME; or for a list,
 * ?q=WORDS&state=STATE&sort=KEY&limit=N&offset=N. */
#ifndef DT_WEB_RUNS_ASKED_H
#define DT_WEB_RUNS_ASKED_H

#include "web/request.h"

#define DT_WEB_RUNS_ASKED_MOST 1000

/* Returns the ids, without repetition, in the arena. DT_ERR_USAGE: neither or both are given, or too many;
 * DT_ERR_NOT_FOUND. */
dt_status dt_web_runs_asked(const char ***ids, int64_t *count, dt_web_request *request,
                            dt_arena *arena, dt_error *err);
/* Reads the query of a list; its strings live as long as the request. DT_ERR_USAGE. */
dt_status dt_web_search_asked(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                              dt_error *err);

#endif
