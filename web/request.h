/* request: what a route's function is given, and what it gives back.
 *
 * A page function queries the store and formats; it sees neither sockets nor headers. It fills
 * the reply with JSON (dt_web_reply_json) or leaves a status: DT_ERR_NOT_FOUND is 404,
 * DT_ERR_USAGE 400, DT_ERR_BUSY 503, any other 500, with the error's message as JSON.
 *
 * An answer that may be large is a stream: parts of some kilobytes, each made when the one before
 * has been taken, so that who reads slowly costs a part and holds neither the store nor memory.
 * Ownership  everything of a request lives until its page function returns; what a stream needs
 *            is its own
 * Threads    each request has one of its own; the handle of the store is its alone meanwhile
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
    dt_store *store; /* NULL for a route of which the table says that it needs none */
    dt_arena *arena;
    const char *folder; /* of the store: runs/ID/ lies below it */
    const char *run;    /* of the path, as it came: to be looked up; "" where there is none */
    const char *asset;  /* of the route: the embedded file */
    int64_t now_ms;
    struct MHD_Connection *connection; /* NULL: asked by this program itself (report.h), */
    const char *const *arguments;      /* with these: a name, its value, ..., NULL */
    struct dt_web_live *live;          /* who follows runs; NULL likewise */
    struct dt_web_commands *commands;  /* command.h; NULL likewise */
} dt_web_request;

#define DT_WEB_PART_BYTES ((size_t)32 << 10) /* a stream's part is about as large, or one item */

typedef struct dt_web_stream {
    /* Adds the next part to `out`; *more is false with the last. An error breaks the connection
     * off (the answer is then not whole JSON), or is the answer where it comes with the first. */
    dt_status (*next)(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err);
    void (*free)(void *state);
    void *state;
    bool waits; /* `next` may block; it is called without a store but for the first part */
} dt_web_stream;

typedef struct dt_web_reply {
    int status;
    const char *type;  /* MIME */
    const char *bytes; /* either these, which live on, */
    size_t length;
    char *owned;           /* or these, which are freed */
    dt_web_stream stream;  /* or this */
    const char *file_name; /* it is to be kept under; NULL: it is to be shown */
    const char *location;  /* of a redirection; NULL: none */
    char cookie[160];      /* to be set; "": none */
    bool close;            /* the connection ends with this answer */
} dt_web_reply;

typedef dt_status (*dt_web_page)(dt_web_request *request, dt_web_reply *reply, dt_error *err);

#define DT_WEB_API_VERSION 1

/* Status 200, in parts; takes `state`. */
void dt_web_reply_stream(dt_web_reply *reply,
                         dt_status (*next)(void *, dt_store *, dt_strbuf *, bool *, dt_error *),
                         void (*free)(void *), void *state);

/* Takes `object`; adds "api": the version. */
dt_status dt_web_reply_json(dt_web_reply *reply, int status, json_t *object, dt_error *err);

/* An embedded file by its name. */
void dt_web_reply_file(dt_web_reply *reply, int status, const char *name);

/* Arguments of the query. NULL or the fallback where it is missing; DT_ERR_USAGE where it is not a
 * whole number between low and high. */
const char *dt_web_argument(const dt_web_request *request, const char *name);
dt_status dt_web_argument_int(int64_t *out, const dt_web_request *request, const char *name,
                              int64_t fallback, int64_t low, int64_t high, dt_error *err);

/* The run that the path names, by all that the command line takes: an id, a beginning of one, a name, 'last'. */
dt_status dt_web_run(dt_run *out, const dt_web_request *request, dt_error *err);
/* What /api/v1/runs/ID answers; new reference. */
dt_status dt_web_run_view_json(json_t **out, dt_web_request *request, dt_error *err);

/* --- the pages; routes.c has the table */
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
