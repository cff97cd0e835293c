#include "runner/supervisor/collect/run_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define BUSY_MS          1000 /* SQLite busy timeout; then the thread checks whether to continue */
#define AGAIN_NS         ((uint64_t)1000000000)
#define BATCH_BYTES      4096
#define TRANSACTION_MOST 256 /* batches */
#define SYNC_SECONDS     1.0

typedef struct change {
    struct change *next;
    dt_store_write_fn *write;
    const void *what;
} change;

typedef struct batch {
    struct batch *next;
    int64_t number;
    size_t bytes;
    dt_arena arena;
    change *first, **last;
} batch;

struct dt_store_writer {
    uv_thread_t thread;
    uv_async_t async;
    const char *path;
    dt_store_writer_calls calls;
    void *context;

    /* used by the loop */
    batch *open;
    int64_t submitted, delivered, durable_delivered;
    bool failure_delivered;

    /* used by the thread */
    dt_store *store;
    bool stalled;          /* guarded by the lock: batches cannot be stored now */
    char stall[400];       /* reason of the stall */
    double synced_seconds; /* time of the last sync */

    uv_mutex_t lock; /* guards the fields below */
    uv_cond_t changed;
    batch *first, **last;
    size_t bytes;
    int64_t stored, durable;
    int64_t hurried; /* batch that must be synced as soon as it is stored; 0: none */
    bool closing;
    dt_status st;
    dt_error err;
};

static void batch_free(batch *one)
{
    if (one != NULL)
        dt_arena_release(&one->arena);
    free(one);
}

/* --- on the thread */

/* Returns DT_ERR_PEER if the store file was replaced; the run was then moved to the new file. */
static dt_status check_current(dt_store_writer *writer, dt_error *err)
{
    dt_status st = DT_OK;

    if (writer->calls.replaced == NULL || dt_store_is_current(writer->store))
        return DT_OK;
    DT_TRY(writer->calls.replaced(writer->context, writer->store, err));
    DT_THROW(err, DT_ERR_PEER, "the file of the run store was removed or replaced");
out:
    return st;
}

/* Stores the batches in one transaction. *passes: the failure may be temporary. */
static dt_status store_all(dt_store_writer *writer, const batch *from, const batch *last,
                           bool *passes, dt_error *err)
{
    dt_status st = DT_OK;
    bool begun = false;

    *passes = true;
    if (writer->store == NULL) {
        DT_TRY(dt_store_open(&writer->store, writer->path, err));
        dt_store_set_patience(writer->store, BUSY_MS);
    }
    DT_TRY(check_current(writer, err));
    DT_TRY(dt_store_begin(writer->store, err));
    begun = true;
    for (const batch *one = from; one != NULL; one = one != last ? one->next : NULL)
        for (const change *each = one->first; each != NULL; each = each->next) {
            st = each->write(writer->store, each->what, err);
            *passes = st == DT_OK || st == DT_ERR_IO || st == DT_ERR_NOMEM;
            if (st != DT_OK)
                goto out;
        }
    DT_TRY(dt_store_commit(writer->store, err));
out:
    *passes = *passes && st != DT_ERR_CORRUPT && st != DT_ERR_PEER;
    if (st != DT_OK && begun)
        dt_store_rollback(writer->store);
    if (writer->calls.settled != NULL && begun)
        writer->calls.settled(writer->context, st == DT_OK);
    /* If the file was replaced, the old one holds the only copy of the run: keep it open until
     * the run was moved. */
    if (st != DT_OK && st != DT_ERR_BUSY && writer->store != NULL &&
        (st == DT_ERR_PEER || dt_store_is_current(writer->store))) {
        dt_store_close(writer->store);
        writer->store = NULL;
    }
    return st;
}

static void note_stall(dt_store_writer *writer, dt_status st, const dt_error *err)
{
    if (st != DT_OK && !writer->stalled)
        dt_log_warn("the history waits: %s", err->message);
    else if (st == DT_OK && writer->stalled)
        dt_log_info("the history is written again");
    uv_mutex_lock(&writer->lock);
    writer->stalled = st != DT_OK;
    if (writer->stalled)
        snprintf(writer->stall, sizeof(writer->stall), "%.390s", err->message);
    uv_mutex_unlock(&writer->lock);
}

static dt_status sync_all(dt_store_writer *writer, dt_error *err)
{
    dt_status st = DT_OK;

    if (writer->calls.sync != NULL)
        DT_TRY(writer->calls.sync(writer->context, err));
    /* closed after an error: open the file again to sync what was stored */
    if (writer->store == NULL) {
        DT_TRY(dt_store_open(&writer->store, writer->path, err));
        dt_store_set_patience(writer->store, BUSY_MS);
    }
    DT_TRY(check_current(writer, err));
    DT_TRY(dt_store_sync(writer->store, err));
out:
    return st;
}

/* Syncs if due. Called with the lock held, and releases it during the sync. Returns the seconds
 * until the next sync, 0: none is needed. */
static double sync_if_due(dt_store_writer *writer)
{
    double wait = writer->synced_seconds + SYNC_SECONDS - dt_clock_monotonic_seconds();
    int64_t stored = writer->stored;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (writer->calls.durable == NULL || stored == writer->durable || writer->st != DT_OK)
        return 0;
    if (wait > 0 && (writer->hurried == 0 || stored < writer->hurried))
        return wait;
    if (stored >= writer->hurried) /* otherwise this sync does not include it */
        writer->hurried = 0;
    uv_mutex_unlock(&writer->lock);
    st = sync_all(writer, &err);
    note_stall(writer, st, &err);
    writer->synced_seconds = dt_clock_monotonic_seconds();
    uv_mutex_lock(&writer->lock);
    if (st == DT_OK)
        writer->durable = stored;
    if (st == DT_ERR_PEER) {
        writer->st = st;
        writer->err = err;
    }
    if (st == DT_OK || st == DT_ERR_PEER)
        uv_async_send(&writer->async);
    return SYNC_SECONDS;
}

/* Called with the lock held. */
static void drop_up_to(dt_store_writer *writer, int64_t number)
{
    while (writer->first != NULL && writer->first->number <= number) {
        batch *one = writer->first;

        writer->first = one->next;
        writer->bytes -= one->bytes;
        writer->stored = one->number;
        batch_free(one);
    }
    if (writer->first == NULL)
        writer->last = &writer->first;
}

static void serve(void *context)
{
    dt_store_writer *writer = context;

    uv_mutex_lock(&writer->lock);
    while (!writer->closing) {
        const batch *from, *last;
        dt_error err = DT_ERROR_INIT;
        bool passes = true;
        double wait;
        dt_status st;

        wait = sync_if_due(writer);
        from = last = writer->first;
        if (writer->closing)
            break;
        if (from == NULL || writer->st != DT_OK) {
            if (writer->stored == writer->durable || writer->calls.durable == NULL ||
                writer->st != DT_OK)
                uv_cond_wait(&writer->changed, &writer->lock);
            else
                uv_cond_timedwait(&writer->changed, &writer->lock, (uint64_t)(wait * 1e9) + 1);
            continue;
        }
        for (int i = 1; last->next != NULL && i < TRANSACTION_MOST; i++)
            last = last->next;
        uv_mutex_unlock(&writer->lock); /* the loop only appends */
        st = store_all(writer, from, last, &passes, &err);
        if (passes)
            note_stall(writer, st, &err);
        uv_mutex_lock(&writer->lock);
        if (st == DT_OK) {
            drop_up_to(writer, last->number);
        } else if (!passes) {
            writer->st = st;
            writer->err = err;
        } else if (st != DT_ERR_BUSY && !writer->closing) {
            uv_cond_timedwait(&writer->changed, &writer->lock, AGAIN_NS);
        }
        if (st == DT_OK || !passes)
            uv_async_send(&writer->async);
    }
    uv_mutex_unlock(&writer->lock);
    dt_store_close(writer->store);
    writer->store = NULL;
}

/* --- on the loop */

bool dt_store_writer_is_stalled(dt_store_writer *writer, dt_strbuf *why)
{
    bool stalled;

    uv_mutex_lock(&writer->lock);
    stalled = writer->stalled;
    if (stalled)
        dt_strbuf_add_str(why, writer->stall);
    uv_mutex_unlock(&writer->lock);
    return stalled;
}

static void on_news(uv_async_t *async)
{
    dt_store_writer *writer = async->data;
    dt_error err = DT_ERROR_INIT;
    int64_t stored, durable;
    dt_status st;

    uv_mutex_lock(&writer->lock);
    stored = writer->stored;
    durable = writer->durable;
    st = writer->st;
    if (st != DT_OK)
        err = writer->err;
    uv_mutex_unlock(&writer->lock);
    if (stored > writer->delivered) {
        writer->delivered = stored;
        writer->calls.stored(writer->context, stored);
    }
    if (durable > writer->durable_delivered) {
        writer->durable_delivered = durable;
        writer->calls.durable(writer->context, durable);
    }
    if (st != DT_OK && !writer->failure_delivered) {
        writer->failure_delivered = true;
        writer->calls.failed(writer->context, st, &err);
    }
}

dt_status dt_store_writer_open(dt_store_writer **out, const char *path, uv_loop_t *loop,
                               const dt_store_writer_calls *calls, void *context, dt_error *err)
{
    dt_store_writer *writer = dt_calloc(1, sizeof(*writer));

    *out = NULL;
    writer->path = path;
    writer->calls = *calls;
    writer->context = context;
    writer->last = &writer->first;
    uv_mutex_init(&writer->lock);
    uv_cond_init(&writer->changed);
    uv_async_init(loop, &writer->async, on_news);
    writer->async.data = writer;
    *out = writer;
    if (uv_thread_create(&writer->thread, serve, writer) != 0) {
        writer->closing = true;
        writer->thread = 0;
        return DT_FAIL(err, DT_ERR_IO, "cannot start a thread");
    }
    return DT_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dt_store_writer *writer = handle->data;

    uv_cond_destroy(&writer->changed);
    uv_mutex_destroy(&writer->lock);
    free(writer);
}

void dt_store_writer_close(dt_store_writer *writer)
{
    if (writer == NULL)
        return;
    uv_mutex_lock(&writer->lock);
    writer->closing = true;
    uv_cond_signal(&writer->changed);
    uv_mutex_unlock(&writer->lock);
    if (writer->thread != 0)
        uv_thread_join(&writer->thread);
    batch_free(writer->open);
    drop_up_to(writer, INT64_MAX);
    uv_close((uv_handle_t *)&writer->async, on_closed);
}

static void *take(dt_store_writer *writer, size_t bytes)
{
    void *memory;

    if (writer->open == NULL) {
        writer->open = dt_calloc(1, sizeof(*writer->open));
        dt_arena_init(&writer->open->arena, BATCH_BYTES);
        writer->open->last = &writer->open->first;
    }
    memory = dt_arena_alloc(&writer->open->arena, bytes);
    writer->open->bytes += bytes;
    return memory;
}

const void *dt_store_writer_copy(dt_store_writer *writer, const void *what, size_t bytes)
{
    return memcpy(take(writer, bytes), what, bytes);
}

void dt_store_writer_add(dt_store_writer *writer, dt_store_write_fn *write, const void *what,
                         size_t bytes)
{
    change *one = take(writer, sizeof(*one));

    *one = (change){.write = write, .what = dt_store_writer_copy(writer, what, bytes)};
    *writer->open->last = one;
    writer->open->last = &one->next;
}

int64_t dt_store_writer_submit(dt_store_writer *writer)
{
    batch *one = writer->open;

    if (one == NULL)
        return writer->submitted;
    writer->open = NULL;
    one->number = ++writer->submitted;
    uv_mutex_lock(&writer->lock);
    *writer->last = one;
    writer->last = &one->next;
    writer->bytes += one->bytes;
    uv_cond_signal(&writer->changed);
    uv_mutex_unlock(&writer->lock);
    return writer->submitted; /* the batch now belongs to the thread */
}

void dt_store_writer_request_sync(dt_store_writer *writer)
{
    uv_mutex_lock(&writer->lock);
    writer->hurried = writer->submitted;
    uv_cond_signal(&writer->changed);
    uv_mutex_unlock(&writer->lock);
}

bool dt_store_writer_is_idle(const dt_store_writer *writer)
{
    return writer == NULL || (writer->open == NULL && writer->delivered == writer->submitted);
}

bool dt_store_writer_is_durable(const dt_store_writer *writer, int64_t number)
{
    return writer == NULL || writer->durable_delivered >= number;
}

size_t dt_store_writer_waiting_bytes(dt_store_writer *writer)
{
    size_t bytes;

    uv_mutex_lock(&writer->lock);
    bytes = writer->bytes;
    uv_mutex_unlock(&writer->lock);
    return bytes;
}
