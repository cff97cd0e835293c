/* live: pushes news of runs to the clients that follow them.
 *
 * Purpose  an open page gets news without polling: while there are followers, one thread watches the store for
 *          changes and wakes them. The news since a cursor are read and formatted once for all followers at that
 *          cursor (most are), so that fifty pages cost as much as one
 * Cursor   records what a client has received (live.h); the server keeps nothing for clients that are away
 * Threads  any; a follower's wait blocks its own
 */
#ifndef DT_WEB_LIVE_H
#define DT_WEB_LIVE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "store/store.h"
#include "web/stores.h"

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
    const dt_run_search *search;   /* a list of these runs; NULL: a run */
    struct dt_web_follower *among; /* all followers of its stream; NULL: only itself */
    int count;                     /* of `among` */
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
                                const dt_run_search *search, dt_error *err);
dt_status dt_web_live_list_now(dt_strbuf *out, dt_web_live *live, dt_store *store, const char *key,
                               const dt_run_search *search, dt_error *err);
void dt_web_list_release(dt_web_list *list);
void dt_web_news_release(dt_web_news *news);

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

#endif
