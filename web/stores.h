/* stores: shares handles of the run store among the threads of the server.
 *
 * Purpose  a query of a long curve takes seconds, that of the health check a millisecond: each kind of query has its
 *          own handles, so that a cheap query never waits for an expensive one
 * Threads  any; a thread owns a handle from take to give_back
 *
 * A store that was replaced is reopened. A store that is missing is DT_ERR_BUSY until it is back; it is not created.
 */
#ifndef DT_WEB_STORES_H
#define DT_WEB_STORES_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "store/store.h"

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

#endif
