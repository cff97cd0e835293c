/* routes: which function answers which path; one table, and nothing is served beside it.
 *
 * A pattern's segment "ID" stands for any one segment, the id of a run.
 */
#ifndef DT_WEB_ROUTES_H
#define DT_WEB_ROUTES_H

#include "web/request.h"

/* Fills request->run and request->asset; never NULL: what no route matches is "missing.html", or a
 * JSON answer below /api. */
dt_web_page dt_web_route(dt_web_request *request, const char *path);

#endif
