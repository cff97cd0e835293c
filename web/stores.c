#include "web/web_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"

#define WAIT_SECONDS 10 /* time limit for a free handle; then the answer is 503 */

dt_status dt_web_handle_renew(dt_web_handle *handle, const char *path, dt_error *err)
{
    struct stat info;
    dt_status st;

    if (stat(path, &info) != 0) {
        dt_store_close(handle->store);
        handle->store = NULL;
        return DT_FAIL(err, DT_ERR_BUSY, "the run store is missing at the moment");
    }
    if (handle->store != NULL && handle->device == info.st_dev && handle->inode == info.st_ino)
        return DT_OK;
    dt_store_close(handle->store);
    st = dt_store_open_to_read(&handle->store, path, err);
    handle->device = info.st_dev;
    handle->inode = info.st_ino;
    return st;
}

dt_status dt_web_stores_open(dt_web_stores *stores, const char *path, dt_error *err)
{
    pthread_condattr_t clock;
    dt_store *first;
    dt_status st;

    memset(stores, 0, sizeof(*stores));
    pthread_mutex_init(&stores->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* the wall clock may jump */
    pthread_cond_init(&stores->given_back, &clock);
    pthread_condattr_destroy(&clock);
    stores->path = dt_strdup(path);
    st = dt_store_open_to_read(&first, path, err);
    dt_store_close(st == DT_OK ? first : NULL);
    return st;
}

void dt_web_stores_end_waits(dt_web_stores *stores)
{
    pthread_mutex_lock(&stores->lock);
    stores->closing = true;
    pthread_cond_broadcast(&stores->given_back);
    pthread_mutex_unlock(&stores->lock);
}

void dt_web_stores_close(dt_web_stores *stores)
{
    if (stores->path == NULL)
        return;
    for (int kind = 0; kind < DT_WEB_KINDS; kind++)
        for (int i = 0; i < DT_WEB_HANDLES; i++)
            dt_store_close(stores->handles[kind][i].store);
    pthread_cond_destroy(&stores->given_back);
    pthread_mutex_destroy(&stores->lock);
    free(stores->path);
    stores->path = NULL;
}

/* Returns a free handle, preferably one that is already open; NULL if all are taken. */
static dt_web_handle *free_handle(dt_web_stores *stores, dt_web_kind kind)
{
    dt_web_handle *found = NULL;

    for (int i = 0; i < DT_WEB_HANDLES; i++) {
        dt_web_handle *handle = &stores->handles[kind][i];

        if (!handle->taken && (found == NULL || (found->store == NULL && handle->store != NULL)))
            found = handle;
    }
    return found;
}

dt_status dt_web_stores_take(dt_web_handle **out, dt_web_stores *stores, dt_web_kind kind,
                             dt_error *err)
{
    dt_web_handle *handle;
    struct timespec until;
    dt_status st;
    int late = 0;

    *out = NULL;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&stores->lock);
    while ((handle = free_handle(stores, kind)) == NULL && !stores->closing && late == 0)
        late = pthread_cond_timedwait(&stores->given_back, &stores->lock, &until);
    if (stores->closing)
        handle = NULL;
    if (handle != NULL)
        handle->taken = true;
    pthread_mutex_unlock(&stores->lock);
    if (handle == NULL)
        return DT_FAIL(err, DT_ERR_BUSY, "too many requests at once: try again in a moment");
    st = dt_web_handle_renew(handle, stores->path, err);
    if (st != DT_OK)
        dt_web_stores_give_back(stores, handle);
    else
        *out = handle;
    return st;
}

void dt_web_stores_give_back(dt_web_stores *stores, dt_web_handle *handle)
{
    /* a handle that was opened read-only does not see later writes */
    if (handle->store != NULL && !dt_store_can_write(handle->store)) {
        dt_store_close(handle->store);
        handle->store = NULL;
    }
    pthread_mutex_lock(&stores->lock);
    handle->taken = false;
    pthread_cond_broadcast(&stores->given_back);
    pthread_mutex_unlock(&stores->lock);
}
