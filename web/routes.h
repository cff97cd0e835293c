/* routes: which function answers which path; one table, and nothing is served beside it.
 *
 * A pattern's segment "ID" stands for any one segment, the id of a run.
 */
#ifndef DT_WEB_ROUTES_H
#define DT_WEB_ROUTES_H

#include "web/request.h"

typedef enum dt_web_cost {
    DT_WEB_NO_STORE, /* needs no store: an embedded file */
    DT_WEB_LITTLE,   /* some rows */
    DT_WEB_MUCH      /* as much as a run has written */
} dt_web_cost;

typedef enum dt_web_door {
    DT_WEB_LOCKED, /* for who knows the token */
    DT_WEB_PAGE,   /* that too, and a person sees it: a link may lead here */
    DT_WEB_OPEN    /* for everybody: it says nothing of runs */
} dt_web_door;

typedef struct dt_web_route {
    const char *pattern;
    dt_web_page page;
    const char *asset;
    dt_web_cost cost;
    dt_web_door door;
} dt_web_route;

/* Fills request->run and request->asset; never NULL: what no route matches is "missing.html", or a
 * JSON answer below /api. */
const dt_web_route *dt_web_route_find(dt_web_request *request, const char *path);

#endif
