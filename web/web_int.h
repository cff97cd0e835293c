/* web_int: what the files of this folder share: open stores, answers, live streams, and the handlers of
 * requests. */
#ifndef DT_WEB_WEB_INT_H
#define DT_WEB_WEB_INT_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/activity.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"
#include "store/run_value.h"
#include "web/change.h"
#include "web/command.h"
#include "web/listen.h"

/* stores: shares handles of the run store among the threads of the server.
 *
 * Purpose  a query of a long curve takes seconds, that of the health check a millisecond: each kind of query has its
 *          own handles, so that a cheap query never waits for an expensive one
 * Threads  any; a thread owns a handle from take to give_back
 *
 * A store that was replaced is reopened. A store that is missing is DT_ERR_BUSY until it is back; it is not created.
 */

typedef enum dt_web_kind { DT_WEB_CHEAP, DT_WEB_EXPENSIVE, DT_WEB_KINDS } dt_web_kind;

#define DT_WEB_HANDLES 2 /* of each kind */

typedef struct dt_web_handle {
    dt_store *store; /* NULL: not opened yet */
    dev_t device;
    ino_t inode;
    bool taken;
} dt_web_handle;

typedef struct dt_web_stores {
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    bool closing;
    char *path;
    dt_web_handle handles[DT_WEB_KINDS][DT_WEB_HANDLES];
} dt_web_stores;

/* Reopens the store if the file at `path` is another one. DT_ERR_BUSY: it is missing. */
dt_status dt_web_handle_renew(dt_web_handle *handle, const char *path, dt_error *err);

/* Opens the store; creates it if missing. */
dt_status dt_web_stores_open(dt_web_stores *stores, const char *path, dt_error *err);
void dt_web_stores_end_waits(dt_web_stores *stores); /* waiting threads get an error from now on */
void dt_web_stores_close(dt_web_stores *stores);     /* after all handles were given back */

/* Waits for a free handle. DT_ERR_BUSY if none becomes free in time. */
dt_status dt_web_stores_take(dt_web_handle **out, dt_web_stores *stores, dt_web_kind kind,
                             dt_error *err);
void dt_web_stores_give_back(dt_web_stores *stores, dt_web_handle *handle);

/* live: pushes news of runs to the clients that follow them.
 *
 * Purpose  an open page gets news without polling: while there are followers, one thread watches the store for
 *          changes and wakes them. The news since a cursor are read and formatted once for all followers at that
 *          cursor (most are), so that fifty pages cost as much as one
 * Cursor   records what a client has received; the server keeps nothing for clients that are away
 * Threads  any; a follower's wait blocks its own
 */

#define DT_WEB_LIVE_NEWS 64 /* entries of the cache */

/* A cache entry: what is new after a cursor. */
typedef struct dt_web_news {
    char *run, *before; /* id of the run, or key of the list, and the cursor; NULL: unused entry */
    int64_t rank, version;
    char *after; /* the cursor after these news */
    char *body;  /* fields of a JSON object, "" if nothing is new */
    char *view;  /* the run as in /api/v1/runs/ID; NULL for a list */
    uint64_t view_hash;
    bool more;   /* there are more news: ask at once */
    bool later;  /* the list was read a moment ago: ask again after a pause */
    bool reload; /* the cursor is of another store: the client must load everything up to `after` */
} dt_web_news;

#define DT_WEB_LIVE_LISTS 8 /* entries of the cache */

/* A cache entry: a list as it was last read. */
typedef struct dt_web_list {
    char *key;    /* identifies the query; NULL: unused entry */
    char *after;  /* the cursor of a client that has all of it */
    char *order;  /* its ids as JSON */
    json_t *rows; /* JSON text of each row, by its mark in a cursor */
    int64_t total, active, version, now_ms;
    double made, cost; /* when it was read (monotonic seconds), and how long that took */
} dt_web_list;

typedef struct dt_web_live {
    dt_web_stores *stores;
    const char *folder;   /* of the store */
    int most;             /* followers at once */
    pthread_mutex_t lock; /* guards all below except `news` and `lists` */
    pthread_cond_t changed, wanted;
    int64_t version; /* rises when the store has changed */
    int followers;
    bool begun, closing;
    pthread_t watcher;
    pthread_mutex_t reading; /* guards `news` and `lists` */
    dt_web_news news[DT_WEB_LIVE_NEWS];
    dt_web_list lists[DT_WEB_LIVE_LISTS];
    int oldest, oldest_list;
} dt_web_live;

dt_status dt_web_live_begin(dt_web_live *live, dt_web_stores *stores, const char *folder, int most,
                            dt_error *err);
void dt_web_live_end_waits(dt_web_live *live); /* ends all waits, and refuses new followers */
void dt_web_live_end(dt_web_live *live);       /* after all followers have left */

typedef enum dt_web_wait { DT_WEB_NEWS, DT_WEB_QUIET, DT_WEB_OVER } dt_web_wait;

/* --- live_news.c */
typedef struct dt_web_follower {
    char *run;       /* id of the run; for a list, a key that is unique to its query */
    int64_t rank;    /* the rank whose log is also sent; -1: none */
    dt_strbuf after; /* the cursor */
    int64_t version; /* of the store, as last reported */
    uint64_t view_hash;
    const struct dt_web_query *query; /* a list of these runs; NULL: a run */
    struct dt_web_follower *among;    /* all followers of its stream; NULL: only itself */
    int count;                        /* of `among` */
} dt_web_follower;
/* Appends an event of the stream if anything is new, and advances the follower. Sets the
 * follower's version to -1 if more news are waiting, to DT_WEB_LIVE_LATER if a list is to be
 * asked for again after a pause. */
dt_status dt_web_live_send(dt_strbuf *out, dt_web_live *live, dt_web_follower *follower,
                           dt_error *err);
/* Appends the id of an event: the cursors of all followers of the stream, separated by commas. */
void dt_web_live_id_add(dt_strbuf *out, const dt_web_follower *follower);
/* Sets the follower's cursor to the present. */
dt_status dt_web_live_now(dt_web_live *live, dt_store *store, dt_web_follower *follower,
                          dt_error *err);

/* --- live_list.c: the changed runs of a list, the order of its runs and their number. The
 * cursor names the runs that the client has, each with a hash of its fields:
 * "STORE.TOTAL-ACTIVE.ID-HASH.ID-HASH." */
#define DT_WEB_LIVE_LIST_MOST 200  /* runs */
#define DT_WEB_LIVE_LATER     (-2) /* version of a follower that gets more news after a pause */
/* Reads a list once for all its followers, and again only after a pause of 20 times the reading time. */
dt_status dt_web_live_list_read(dt_web_news *news, dt_web_live *live, dt_store *store,
                                const struct dt_web_query *query, dt_error *err);
dt_status dt_web_live_list_now(dt_strbuf *out, dt_web_live *live, dt_store *store, const char *key,
                               const struct dt_web_query *query, dt_error *err);
void dt_web_list_release(dt_web_list *list);
void dt_web_news_release(dt_web_news *news); /* live_news.c */

/* live_cursor: encodes what a follower of a run has received, as text that the client sends back.
 *
 *   STORE.ATTEMPT.EVENT.LOG[.STEP:SERIES+SERIES-SERIES]...     740:17-22+25 all of these are at step 740
 *
 * STORE identifies the store file, since another file has other numbers. The cursor is self-contained, so that it
 * survives a restart of the server. Clients must treat it as opaque.
 */

typedef struct dt_web_cursor {
    uint64_t store;
    dt_since since;
    int64_t log_bytes; /* received of the log of the followed rank */
} dt_web_cursor;

#define DT_WEB_CURSOR_BYTES_MOST ((size_t)24 << 10) /* a longer cursor is refused */

/* Returns STORE of the file at a path. */
uint64_t dt_web_cursor_store(const char *path);
void dt_web_cursor_add(dt_strbuf *out, const dt_web_cursor *cursor);
/* Parses untrusted text into the arena; false if it is not a cursor. */
bool dt_web_cursor_read(dt_web_cursor *out, const char *text, dt_arena *arena);

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
    struct dt_web_live *live;          /* NULL in such a request */
    struct dt_web_commands *commands;  /* command.h; NULL in such a request */
    dt_web_changes *changes;           /* change.h; NULL: this server changes nothing */
    bool may_write;                    /* the client may change runs */
    const char *body;                  /* of a change; ends with a NUL byte */
    size_t body_bytes;
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
    const char *allow;     /* the methods of a 405; NULL: GET and HEAD */
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
/* Lists the values of an argument that may be given more than once, in the arena; DT_ERR_USAGE: more than `most`. */
dt_status dt_web_arguments(const char ***out, int64_t *count, const dt_web_request *request,
                           const char *name, int64_t most, dt_arena *arena, dt_error *err);
/* Lists the parts of an argument like "a,b". */
dt_status dt_web_argument_list(const char ***out, int64_t *count, const dt_web_request *request,
                               const char *name, int64_t most, dt_arena *arena, dt_error *err);

/* Finds the run in the path, as on the command line: an id, the beginning of an id, a name, or 'last'. */
dt_status dt_web_run(dt_run *out, const dt_web_request *request, dt_error *err);
/* Returns the answer of /api/v1/runs/ID; new reference. */
dt_status dt_web_run_view_json(json_t **out, dt_web_request *request, dt_error *err);

/* Copies the environment of this process to an array in the arena, without the server's token and DTRUN_SERVER; returns
 * the number of variables, after which there is room for `more` and NULL. (api_command.c) */
size_t dt_web_environment(char ***out, dt_arena *arena, size_t more);

/* --- the page functions; routes.c has the table */
dt_status dt_web_runs(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_run_view(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_recipe(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_notes(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_files(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_file_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_why(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_health(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_metrics(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_buckets(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_band(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_curves(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_table(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_keys(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_csv(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_checkpoints(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_evaluations(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_samples(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_confusion(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_events(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_logs(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_live_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_live_of_several(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_prometheus(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_rights(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_name(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_note(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_tags(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_archive(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_stop(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_remove(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_change_result(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_command(dt_web_request *request, dt_web_reply *reply, dt_error *err);
dt_status dt_web_queue(dt_web_request *request, dt_web_reply *reply, dt_error *err);

/* requested_runs: finds the runs that a request names: ?runs=ID,ID,... or ?group=NAME; or those of a list,
 * ?q=WORDS&state=STATE&group=NAME&tag=TAG&filter=FILTER&columns=KEYS&sort=KEY&limit=N&offset=N. */

#define DT_WEB_REQUESTED_RUNS_MAX 1000

/* Returns their ids, each once, in the arena. DT_ERR_USAGE: neither parameter is given, or both, or too
 * many runs; DT_ERR_NOT_FOUND. */
dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err);
#define DT_WEB_FILTERS_MAX 16
#define DT_WEB_COLUMNS_MAX 32
/* A list of runs: which, and the keys whose values each row has. */
typedef struct dt_web_query {
    dt_run_search search;
    const char **columns;
    int64_t columns_count;
    const char *key; /* differs from that of every other query */
} dt_web_query;
/* Reads the parameters of a list; *out lives in the arena. DT_ERR_USAGE. */
dt_status dt_web_requested_query(dt_web_query *out, dt_web_request *request, int64_t limit_most,
                                 dt_arena *arena, dt_error *err);

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
    DT_WEB_WRITE,  /* a change: POST, and requires the token to write */
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

/* --- api_curves.c: the names of the metrics of all runs, sorted, each once; in the arena */
dt_status dt_web_metric_names(const char ***names, int64_t *count, dt_store *store,
                              const char *const *runs, int64_t runs_count, dt_arena *arena,
                              dt_error *err);

/* run_json: formats a run as JSON for the API, in one place, so that lists and views agree.
 *
 * Unknown values are null. Strings from outside pass through base/display.h.
 */

/* Makes the row of a list, with "columns" if the query has any; new reference. */
dt_status dt_web_row_json(json_t **out, dt_store *store, const dt_run *run,
                          const dt_web_query *query, int64_t now_ms, dt_arena *arena,
                          dt_error *err);
json_t *dt_web_value_of_run_json(
    const dt_run_value *value); /* a number, a text, or null; new reference */
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

/* answer: turns a request into its answer, on the connection's own thread, and sends it.
 *
 *   request -> gate (method, Host, Origin), head (malformed) -> route (one table) -> access (token) -> page
 *           -> respond
 */

/* site: holds the state that the threads of a server share. */

typedef struct dt_web_site {
    const char *folder;      /* of the store: runs/ID/ is in it */
    const char *token;       /* required for all but public routes; NULL: not required */
    const char *write_token; /* accepted as well; required for changes, unless `token` is NULL */
    dt_web_listener listener;
    dt_web_stores stores;
    dt_web_admission admission;
    dt_web_live live;
    dt_web_commands commands;
    dt_web_changes *changes; /* NULL: this server only reads */
} dt_web_site;

/* respond: sends a reply: headers, and a body at once or in parts.
 *
 * Threads  the connection's own thread, which also frees the last part
 */

/* A body whose parts are made as the client reads them. */
typedef struct dt_web_parts dt_web_parts;

/* Queues the reply. Takes over what the reply owns, and the parts (NULL: none). */
enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts);

/* Returns the client of a connection; NULL if it has none. */
dt_web_client *dt_web_client_of(struct MHD_Connection *connection);

/* Forgets the body of the client's request; NULL is accepted. */
void dt_web_body_drop(dt_web_client *client);

/* MHD's callback with the URI as it came, before MHD parses its arguments: returns the fault of the URI, which MHD
 * passes on in *seen; NULL if the URI is accepted. */
void *dt_web_uri_seen(void *context, const char *uri, struct MHD_Connection *connection);

/* MHD's handler: called first with the headers, when the gate decides, then repeatedly until the body, if any, is
 * complete. The client is the connection's socket context. */
enum MHD_Result dt_web_answer(void *site, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen);

#endif
