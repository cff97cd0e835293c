/* web_int: declares what page functions use: the request and the reply, the runs that a request names, JSON
 * of runs, tails of logs; and the table of routes. */
#ifndef DT_WEB_WEB_INT_H
#define DT_WEB_WEB_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/activity.h"
#include "store/store.h"

/* request: defines the request that a route's function gets, and the reply that it fills.
 *
 * A page function queries the store and formats the result; it sees neither sockets nor headers. It fills the reply
 * with JSON (dt_web_reply_json) or returns a status: DT_ERR_NOT_FOUND becomes 404, DT_ERR_USAGE 400, DT_ERR_BUSY 503,
 * any other 500, with the error's message as JSON.
 *
 * A large answer is a stream of parts of some kilobytes. A part is made when the client has read the one before, so
 * that a slow client holds one part in memory and no handle of the store.
 * Ownership  a request lives until its page function returns; a stream owns what it needs
 * Threads    each request has its own thread, and its own handle of the store
 */

struct MHD_Connection;
struct dt_web_commands;
struct dt_web_live;

typedef struct dt_web_request {
    dt_store *store; /* NULL for routes with DT_WEB_NO_STORE */
    dt_arena *arena;
    const char *folder; /* of the store: runs/ID/ is in it */
    const char *run;    /* in the path, not looked up yet; "" if the route has none */
    const char *asset;  /* of the route: the embedded file */
    int64_t now_ms;
    struct MHD_Connection *connection; /* NULL: a request of this program itself (report.h) */
    const char *const *arguments;      /* of such a request: a name, its value, ..., NULL */
    struct dt_web_live *live;          /* live.h; NULL in such a request */
    struct dt_web_commands *commands;  /* command.h; NULL in such a request */
} dt_web_request;

#define DT_WEB_PART_BYTES ((size_t)32 << 10) /* a part's approximate size, or one larger item */

typedef struct dt_web_stream {
    /* Appends the next part to `out`; *more is false with the last. An error in the first part is sent as the
     * answer; a later one closes the connection, which leaves incomplete JSON. */
    dt_status (*next)(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err);
    void (*free)(void *state);
    void *state;
    bool waits; /* `next` may block; it gets the store for the first part only */
} dt_web_stream;

typedef struct dt_web_reply {
    int status;
    const char *type;  /* MIME */
    const char *bytes; /* the body: either static bytes, */
    size_t length;
    char *owned;           /* or bytes that are freed, */
    dt_web_stream stream;  /* or a stream */
    const char *file_name; /* for a download; NULL: the browser shows the answer */
    const char *location;  /* of a redirection; NULL: none */
    char cookie[160];      /* to set; "": none */
    bool close;            /* the connection ends with this answer */
} dt_web_reply;

typedef dt_status (*dt_web_page)(dt_web_request *request, dt_web_reply *reply, dt_error *err);

#define DT_WEB_API_VERSION 1

/* Replies with status 200 and a stream, which owns `state`. */
void dt_web_reply_stream(dt_web_reply *reply,
                         dt_status (*next)(void *, dt_store *, dt_strbuf *, bool *, dt_error *),
                         void (*free)(void *), void *state);

/* Replies with `object`, which is stolen, and adds "api": the version. */
dt_status dt_web_reply_json(dt_web_reply *reply, int status, json_t *object, dt_error *err);

/* Replies with an embedded file. */
void dt_web_reply_file(dt_web_reply *reply, int status, const char *name);

/* Returns an argument of the query: NULL or the fallback if missing; DT_ERR_USAGE if it is not a whole number between
 * low and high. */
const char *dt_web_argument(const dt_web_request *request, const char *name);
dt_status dt_web_argument_int(int64_t *out, const dt_web_request *request, const char *name,
                              int64_t fallback, int64_t low, int64_t high, dt_error *err);

/* Finds the run in the path, as on the command line: an id, the beginning of an id, a name, or 'last'. */
dt_status dt_web_run(dt_run *out, const dt_web_request *request, dt_error *err);
/* Returns the answer of /api/v1/runs/ID; new reference. */
dt_status dt_web_run_view_json(json_t **out, dt_web_request *request, dt_error *err);

/* --- the page functions; routes.c has the table */
dt_status dt_web_runs(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_run_view(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_recipe(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_health(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_metrics(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_buckets(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_band(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_csv(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_checkpoints(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_events(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_logs(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_live_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_live_of_several(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_prometheus(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_command(dt_web_request *request, dt_web_reply *reply, dt_error *err);

/* requested_runs: finds the runs that a request names: ?runs=ID,ID,... or ?group=NAME; or those of a list,
 * ?q=WORDS&state=STATE&sort=KEY&limit=N&offset=N. */

#define DT_WEB_REQUESTED_RUNS_MAX 1000

/* Returns their ids, each once, in the arena. DT_ERR_USAGE: neither parameter is given, or both, or too
 * many runs; DT_ERR_NOT_FOUND. */
dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err);
/* Reads the parameters of a list; *out borrows from the request. DT_ERR_USAGE. */
dt_status dt_web_requested_search(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                                  dt_error *err);

/* routes: maps paths to page functions with one table, which lists everything that is served.
 *
 * A pattern's segment "ID" stands for any one segment, the id of a run.
 */

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

/* run_json: formats a run as JSON for the API, in one place, so that lists and views agree.
 *
 * Unknown values are null. Strings from outside pass through base/display.h.
 */

/* Returns a new reference; NULL if out of memory. */
json_t *dt_web_run_json(const dt_run *run, const dt_activity *activity, int64_t now_ms);
/* Returns the newest speed of a run that is making steps or has made its last; NaN while it cannot make steps. */
double dt_web_speed(const dt_run *run, const dt_activity *activity);

/* Estimates the remaining seconds from the pace of the newest attempt, which began at start_step; NaN if unknown. */
double dt_web_eta_seconds(const dt_run *run, const dt_activity *activity, int64_t start_step,
                          int64_t now_ms);

/* Returns false for kinds of events that have their own view (curves, logs). */
bool dt_web_event_is_shown(const char *kind);
json_t *dt_web_event_json(const dt_store_event *event);        /* new reference */
json_t *dt_web_log_line_json(const char *line, size_t length); /* "TIME TEXT"; likewise */

json_t *dt_web_string_json(const char *text); /* NULL gives "" */
json_t *dt_web_value_json(json_t *value);     /* steals `value`; makes its strings safe to show */
json_t *dt_web_time_json(int64_t ms);         /* 0 gives null */
/* Appends a number that reads back as a real; null if it is not finite. */
void dt_web_add_real(dt_strbuf *out, double value);

/* log_tail: reads the last lines of a file, in constant memory and without reading the rest.
 *
 * Searches backwards in blocks, over at most DT_LOG_TAIL_BYTES. A last line without a line feed is still being written
 * and is left out.
 * Errors  DT_ERR_IO; a missing file has no lines
 */

#define DT_LOG_TAIL_BYTES ((int64_t)1 << 20)

typedef struct dt_web_log_tail {
    int fd;          /* -1: no file */
    int64_t at, end; /* offsets of the next line and of the end */
} dt_web_log_tail;

/* Finds up to `lines` last lines of the first `valid_bytes` of the file (0: of the whole file). */
dt_status dt_web_log_tail_open(dt_web_log_tail *out, const char *path, int64_t lines,
                               int64_t valid_bytes, dt_error *err);
/* Appends whole lines with their line feeds: about `bytes`, at least one line. *more: lines are left. */
dt_status dt_web_log_tail_next(dt_web_log_tail *tail, dt_strbuf *out, size_t bytes, bool *more,
                               dt_error *err);
void dt_web_log_tail_close(dt_web_log_tail *tail);

#endif
