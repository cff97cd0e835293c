#include "web/live.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define LOOK_SECONDS 0.5 /* interval of checking the store for changes while there are followers */
#define BLIND_SECONDS \
    5.0 /* interval of reopening a store on a read-only file system, where a handle never sees changes */

static struct timespec in_seconds(double seconds)
{
    struct timespec at;
    double whole = floor(seconds);

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds - whole) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* --- the watcher */

typedef struct watch {
    dt_web_handle handle;
    int64_t seen;
} watch;

/* Returns true if the store may have changed since the last call. *wait: seconds until the next call. */
static bool look(watch *w, const char *path, double *wait)
{
    ino_t inode = w->handle.inode;
    dt_error ignored = DT_ERROR_INIT;
    int64_t version = 0;

    *wait = LOOK_SECONDS;
    if (dt_web_handle_renew(&w->handle, path, &ignored) != DT_OK)
        return false; /* the store is missing, and may come back */
    if (!dt_store_can_write(w->handle.store)) {
        dt_store_close(w->handle.store);
        w->handle.store = NULL;
        *wait = BLIND_SECONDS;
        return true;
    }
    if (dt_store_version_seen(w->handle.store, &version, &ignored) != DT_OK)
        return false;
    if (inode == w->handle.inode && version == w->seen)
        return false;
    w->seen = version;
    return true;
}

static void *watch_store(void *context)
{
    dt_web_live *live = context;
    watch w = {.seen = -1};
    struct timespec until;
    double wait;

    pthread_mutex_lock(&live->lock);
    while (!live->closing) {
        if (live->followers == 0) {
            pthread_cond_wait(&live->wanted, &live->lock);
            continue;
        }
        pthread_mutex_unlock(&live->lock);
        bool changed = look(&w, live->stores->path, &wait);
        pthread_mutex_lock(&live->lock);
        if (changed) {
            live->version++;
            pthread_cond_broadcast(&live->changed);
        }
        until = in_seconds(wait);
        while (!live->closing && pthread_cond_timedwait(&live->wanted, &live->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&live->lock);
    dt_store_close(w.handle.store);
    return NULL;
}

/* --- for followers */

dt_status dt_web_live_begin(dt_web_live *live, dt_web_stores *stores, const char *folder, int most,
                            dt_error *err)
{
    pthread_condattr_t clock;

    memset(live, 0, sizeof(*live));
    live->stores = stores;
    live->folder = folder;
    live->most = most;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&live->changed, &clock);
    pthread_cond_init(&live->wanted, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&live->lock, NULL);
    pthread_mutex_init(&live->reading, NULL);
    if (pthread_create(&live->watcher, NULL, watch_store, live) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot serve: cannot start a thread");
    live->begun = true;
    return DT_OK;
}

void dt_web_live_end_waits(dt_web_live *live)
{
    if (!live->begun)
        return;
    pthread_mutex_lock(&live->lock);
    live->closing = true;
    pthread_cond_broadcast(&live->changed);
    pthread_cond_broadcast(&live->wanted);
    pthread_mutex_unlock(&live->lock);
}

void dt_web_live_end(dt_web_live *live)
{
    if (!live->begun)
        return;
    pthread_join(live->watcher, NULL);
    for (int i = 0; i < DT_WEB_LIVE_NEWS; i++)
        dt_web_news_release(&live->news[i]);
    for (int i = 0; i < DT_WEB_LIVE_LISTS; i++)
        dt_web_list_release(&live->lists[i]);
    pthread_cond_destroy(&live->changed);
    pthread_cond_destroy(&live->wanted);
    pthread_mutex_destroy(&live->lock);
    pthread_mutex_destroy(&live->reading);
    live->begun = false;
}

bool dt_web_live_join(dt_web_live *live)
{
    bool room;

    pthread_mutex_lock(&live->lock);
    room = !live->closing && live->followers < live->most;
    live->followers += room;
    if (room && live->followers == 1)
        pthread_cond_signal(&live->wanted);
    pthread_mutex_unlock(&live->lock);
    return room;
}

void dt_web_live_leave(dt_web_live *live)
{
    pthread_mutex_lock(&live->lock);
    live->followers--;
    pthread_mutex_unlock(&live->lock);
}

dt_web_wait dt_web_live_wait(dt_web_live *live, int64_t *version, double seconds)
{
    struct timespec until = in_seconds(seconds > 0 ? seconds : 0);
    dt_web_wait found;
    int late = 0;

    pthread_mutex_lock(&live->lock);
    while (!live->closing && live->version == *version && late == 0)
        late = pthread_cond_timedwait(&live->changed, &live->lock, &until);
    found = live->closing ? DT_WEB_OVER : live->version == *version ? DT_WEB_QUIET : DT_WEB_NEWS;
    *version = live->version;
    pthread_mutex_unlock(&live->lock);
    return found;
}
