/* live: who follows runs, and what they are told.
 *
 * Purpose  an open page learns of what is new without asking: one thread looks whether the store has changed, while
 *          anybody follows, and wakes the others; what is new since a cursor is read and written once for all who
 *          are there (most are), so that fifty pages cost what one does
 * Cursor   says how far somebody has come (live_cursor.h); nothing is kept for who is away
 * Threads  any; a follower's wait blocks its own
 */
#ifndef DT_WEB_LIVE_H
#define DT_WEB_LIVE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "web/stores.h"

#define DT_WEB_LIVE_NEWS 64 /* that are kept for others */

/* What is new after a cursor. */
typedef struct dt_web_news {
    char *run, *before; /* id, or what a list is of, and cursor; NULL: an empty place */
    int64_t rank, version;
    char *after; /* the cursor past it */
    char *body;  /* fields of an object, "" where nothing is new */
    char *view;  /* the run as /api/v1/runs/ID has it; NULL of a list */
    uint64_t view_hash;
    bool more;  /* to be asked for at once */
    bool later; /* of a list that was read a moment ago: to be asked for again after a pause */
    bool anew;  /* the cursor was of another store: what was before `after` is to be asked for */
} dt_web_news;

#define DT_WEB_LIVE_LISTS 8 /* that are kept for others */

/* A list as it was read last. */
typedef struct dt_web_list {
    char *key;    /* what it is of; NULL: an empty place */
    char *after;  /* the cursor of who has all of it */
    char *order;  /* its ids as JSON */
    json_t *rows; /* by their mark in a cursor, each as JSON text */
    int64_t total, active, version, now_ms;
    double made, cost; /* when, monotonic, and the seconds that it took */
} dt_web_list;

typedef struct dt_web_live {
    dt_web_stores *stores;
    const char *folder;   /* of the store */
    int most;             /* followers at once */
    pthread_mutex_t lock; /* of all below, but for `news` and `lists` */
    pthread_cond_t changed, wanted;
    int64_t version; /* rises when the store has changed */
    int followers;
    bool begun, closing;
    pthread_t watcher;
    pthread_mutex_t reading; /* of `news` and `lists` */
    dt_web_news news[DT_WEB_LIVE_NEWS];
    dt_web_list lists[DT_WEB_LIVE_LISTS];
    int oldest, oldest_list;
} dt_web_live;

dt_status dt_web_live_begin(dt_web_live *live, dt_web_stores *stores, const char *folder, int most,
                            dt_error *err);
void dt_web_live_end_waits(dt_web_live *live); /* who waits goes, and nobody can come */
void dt_web_live_end(dt_web_live *live);       /* when all have gone */

bool dt_web_live_join(dt_web_live *live); /* false: there are too many */
void dt_web_live_leave(dt_web_live *live);

typedef enum dt_web_wait { DT_WEB_NEWS, DT_WEB_QUIET, DT_WEB_OVER } dt_web_wait;
/* Until the store is another than at *version, which is then the newest, or for so long. */
dt_web_wait dt_web_live_wait(dt_web_live *live, int64_t *version, double seconds);

/* --- live_news.c */
typedef struct dt_web_follower {
    char *run;       /* id; of a list, a text that tells it from others */
    int64_t rank;    /* whose log is told, too; -1: none */
    dt_strbuf after; /* the cursor */
    int64_t version; /* of the store that was reported */
    uint64_t view_hash;
    const dt_run_search *search;   /* a list: of these runs; NULL: a run */
    struct dt_web_follower *among; /* those of its stream, itself one of them; NULL: it is alone */
    int count;                     /* of them */
} dt_web_follower;
/* Adds an event of the stream where anything is new, and moves the follower past it. */
dt_status dt_web_live_tell(dt_strbuf *out, dt_web_live *live, dt_web_follower *follower,
                           dt_error *err);
/* What an event's id is: the cursors of all of its stream, by commas. */
void dt_web_live_id_add(dt_strbuf *out, const dt_web_follower *follower);
/* Puts the follower at this moment. */
dt_status dt_web_live_now(dt_web_live *live, dt_store *store, dt_web_follower *follower,
                          dt_error *err);

/* --- live_list.c: of a list, the runs in it that have changed, its order and how many there are. Its cursor says which
 * runs it had, and by a hash of each how it was: "STORE.TOTAL-ACTIVE.ID-HASH.ID-HASH." */
#define DT_WEB_LIVE_LIST_MOST 200  /* runs */
#define DT_WEB_LIVE_LATER     (-2) /* version of a follower who is told more after a pause */
/* A list is read once for all who follow it, and not again before 20 times as long as that took has gone. */
dt_status dt_web_live_list_read(dt_web_news *news, dt_web_live *live, dt_store *store,
                                const dt_run_search *search, dt_error *err);
dt_status dt_web_live_list_now(dt_strbuf *out, dt_web_live *live, dt_store *store, const char *key,
                               const dt_run_search *search, dt_error *err);
void dt_web_list_release(dt_web_list *list);
void dt_web_news_release(dt_web_news *news);

#endif
