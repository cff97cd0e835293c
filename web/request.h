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
#ifndef DT_WEB_REQUEST_H
#define DT_WEB_REQUEST_H

#include "base/arena.h"
#include "base/json.h"
#include "store/store.h"

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
dt_status dt_web_file(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_run_page(dt_web_request *request, dt_web_reply *reply, dt_error *err);

#endif
