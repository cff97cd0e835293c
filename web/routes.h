/* routes: maps paths to page functions with one table, which lists everything that is served.
 *
 * A pattern's segment "ID" stands for any one segment, the id of a run.
 */
#ifndef DT_WEB_ROUTES_H
#define DT_WEB_ROUTES_H

#include "web/request.h"

typedef enum dt_web_cost {
    DT_WEB_NO_STORE, /* needs no store: an embedded file */
    DT_WEB_LITTLE,   /* reads some rows */
    DT_WEB_MUCH      /* can read all that a run has written */
} dt_web_cost;

typedef enum dt_web_door {
    DT_WEB_LOCKED, /* requires the token */
    DT_WEB_PAGE,   /* requires the token; a page for people, which a link may open */
    DT_WEB_OPEN    /* public: has no data of runs */
} dt_web_door;

typedef struct dt_web_route {
    const char *pattern;
    dt_web_page page;
    const char *asset;
    dt_web_cost cost;
    dt_web_door door;
} dt_web_route;

/* Finds the route of a path, and fills request->run and request->asset. Never NULL: an unknown path gets
 * "missing.html", or a JSON answer below /api. */
const dt_web_route *dt_web_route_find(dt_web_request *request, const char *path);

#endif
