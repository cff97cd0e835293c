/* stores: handles of the run store that the threads of the server take in turn.
 *
 * Purpose  a query of a long curve takes seconds, that of the health check a millisecond: each
 *          kind has handles of its own, so that what is cheap waits only for what is cheap
 * Threads  any; a handle belongs to who took it until it is given back
 * A store that was moved away or replaced meanwhile is opened anew; one that is gone is
 * DT_ERR_BUSY until it is back, and never made.
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

/* The store as it lies there now, in place of what the handle had. */
dt_status dt_web_handle_renew(dt_web_handle *handle, const char *path, dt_error *err);

/* Makes the store where there is none yet. */
dt_status dt_web_stores_open(dt_web_stores *stores, const char *path, dt_error *err);
void dt_web_stores_end_waits(dt_web_stores *stores); /* who waits is refused from now on */
void dt_web_stores_close(dt_web_stores *stores);     /* when all are given back */

/* DT_ERR_BUSY where none is given back in time. */
dt_status dt_web_stores_take(dt_web_handle **out, dt_web_stores *stores, dt_web_kind kind,
                             dt_error *err);
void dt_web_stores_give_back(dt_web_stores *stores, dt_web_handle *handle);

#endif
