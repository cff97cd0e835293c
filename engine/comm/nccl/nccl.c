/* nccl: implements nccl.h. */
#include "engine/comm/nccl/nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

/* --- the record of the last collectives */

static const char *nccl_kind_name(dt_nccl_kind kind)
{
    static const char *const names[] = {[DT_NCCL_ALL_REDUCE] = "all_reduce",
                                        [DT_NCCL_REDUCE_SCATTER] = "reduce_scatter",
                                        [DT_NCCL_ALL_GATHER] = "all_gather",
                                        [DT_NCCL_BROADCAST] = "broadcast"};

    return names[kind];
}

/* The oldest unfinished collective; NULL if there is none or it is no longer in the ring. */
static const dt_nccl_entry *nccl_history_oldest(const dt_nccl_history *history)
{
    int64_t number = history->reached + 1;

    if (number > history->queued || history->queued - number >= DT_NCCL_HISTORY)
        return NULL;
    return &history->entries[number % DT_NCCL_HISTORY];
}

/* Log a line per collective: number, kind, bytes, age, whether it is done. */
static void nccl_history_log(const dt_nccl_history *history, const char *name)
{
    int64_t first = history->queued - DT_NCCL_HISTORY + 1;
    double now = dt_clock_monotonic_seconds();

    for (int64_t number = first > 1 ? first : 1; number <= history->queued; number++) {
        const dt_nccl_entry *entry = &history->entries[number % DT_NCCL_HISTORY];

        dt_log_error("communicator '%s': #%lld %s of %.3f MB, queued %.1f s ago: %s", name,
                     (long long)number, nccl_kind_name(entry->kind), (double)entry->bytes / 1e6,
                     now - entry->queued_at, number <= history->reached ? "done" : "not done");
    }
}

/* --- the collectives */

/* Interval of the watching thread's checks. */
#define LOOK_SECONDS 0.1
/* Interval of checks whether NCCL has accepted a call, which takes microseconds. */
#define TAKE_SECONDS 20e-6

typedef struct nccl_state {
    const dt_nccl_link *link;
    dt_device *device;
    dt_queue *queue;
    dt_comm host;
    const char *name;
    int64_t rank, world_size;
    double timeout_seconds;
    dt_peer *peers;
    int64_t peer_count;
    pthread_t watcher;
    bool watched;

    pthread_mutex_t lock; /* guards the fields below, and every call of NCCL */
    pthread_cond_t changed;
    dt_nccl *nccl; /* NCCL's communicator; NULL after a failure */
    dt_nccl_history history;
    dt_error failure;
    bool closing;
} nccl_state;

/* --- failing; the lock is held */

static dt_status tell(const nccl_state *nccl, dt_error *err)
{
    const dt_error *failure = &nccl->failure;

    if (failure->code == DT_OK)
        return DT_OK;
    return dt_error_set(err, failure->code, failure->file, failure->line, "%s", failure->message);
}

/* Record the first failure and abort NCCL, which ends what is queued. */
static void fail(nccl_state *nccl, const dt_error *why)
{
    if (nccl->failure.code != DT_OK)
        return;
    nccl->failure = *why;
    dt_error_prefix(&nccl->failure, "communicator '%s', rank %lld of %lld", nccl->name,
                    (long long)nccl->rank, (long long)nccl->world_size);
    dt_log_error("%s", nccl->failure.message);
    nccl_history_log(&nccl->history, nccl->name);
    if (nccl->nccl != NULL)
        nccl->link->abort(nccl->nccl);
    nccl->nccl = NULL;
    pthread_cond_broadcast(&nccl->changed);
}

/* --- watching; the lock is held */

static dt_status see_what_is_done(nccl_state *nccl, dt_error *err)
{
    const dt_nccl_entry *oldest;
    bool reached = true;
    dt_status st = DT_OK;

    if (nccl->history.queued - nccl->history.reached >
        DT_NCCL_HISTORY) /* later collectives have reused their events */
        nccl->history.reached = nccl->history.queued - DT_NCCL_HISTORY;
    while (reached && (oldest = nccl_history_oldest(&nccl->history)) != NULL) {
        DT_TRY(nccl->link->reached(nccl->device, oldest->event, &reached, err));
        nccl->history.reached += reached;
    }
out:
    return st;
}

static dt_status look_at_time(const nccl_state *nccl, dt_error *err)
{
    const dt_nccl_entry *oldest = nccl_history_oldest(&nccl->history);
    double seconds;

    if (oldest == NULL)
        return DT_OK;
    seconds = dt_clock_monotonic_seconds() - oldest->queued_at;
    if (seconds <= nccl->timeout_seconds)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_COMM,
                   "%s #%lld has waited %.1f s for the other ranks: one of them hangs or has died",
                   nccl_kind_name(oldest->kind), (long long)oldest->number, seconds);
}

static dt_status look_at_peers(const nccl_state *nccl, dt_error *err)
{
    for (int64_t i = 0; i < nccl->peer_count; i++)
        if (!dt_peer_alive(&nccl->peers[i]))
            return DT_FAIL(err, DT_ERR_COMM, "process %lld, another rank on this node, has died",
                           (long long)nccl->peers[i].pid);
    return DT_OK;
}

static dt_status look(nccl_state *nccl, dt_error *err)
{
    dt_status st = DT_OK;
    bool busy;

    DT_TRY(nccl->link->state(nccl->nccl, &busy, err));
    DT_TRY(see_what_is_done(nccl, err));
    DT_TRY(look_at_time(nccl, err));
    if (nccl_history_oldest(&nccl->history) !=
        NULL) /* without a collective in progress, other ranks may leave */
        DT_TRY(look_at_peers(nccl, err));
out:
    return st;
}

static void sleep_until_changed(nccl_state *nccl, double seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(seconds * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&nccl->changed, &nccl->lock, &until);
}

static void *watch(void *self)
{
    nccl_state *nccl = self;

    pthread_mutex_lock(&nccl->lock);
    while (!nccl->closing && nccl->failure.code == DT_OK) {
        dt_error why = DT_ERROR_INIT;

        if (look(nccl, &why) != DT_OK)
            fail(nccl, &why);
        else
            sleep_until_changed(nccl, LOOK_SECONDS);
    }
    pthread_mutex_unlock(&nccl->lock);
    return NULL;
}

/* --- collectives */

/* Fails if waiting for the other ranks to take part is pointless. */
static dt_status look_while_busy(const nccl_state *nccl, double until, dt_error *err)
{
    if (dt_clock_monotonic_seconds() > until)
        return DT_FAIL(err, DT_ERR_COMM, "the other ranks did not connect within %g s",
                       nccl->timeout_seconds);
    return look_at_peers(nccl, err);
}

/* Wait until NCCL has accepted the last call. The lock is held, but released between checks. */
static dt_status wait_until_taken(nccl_state *nccl, dt_error *err)
{
    double until = dt_clock_monotonic_seconds() + nccl->timeout_seconds, pause = TAKE_SECONDS;
    dt_error why = DT_ERROR_INIT;
    bool busy = true;

    while (nccl->failure.code == DT_OK) {
        if (nccl->link->state(nccl->nccl, &busy, &why) == DT_OK && !busy)
            break;
        if (why.code == DT_OK && pause >= LOOK_SECONDS)
            (void)look_while_busy(nccl, until, &why);
        if (why.code != DT_OK) {
            fail(nccl, &why);
        } else {
            sleep_until_changed(nccl, pause);
            pause = pause * 2 < LOOK_SECONDS ? pause * 2 : LOOK_SECONDS;
        }
    }
    return tell(nccl, err);
}

static dt_status take(nccl_state *nccl, const dt_nccl_call *call, dt_error *err)
{
    dt_nccl_entry *entry = &nccl->history.entries[(nccl->history.queued + 1) % DT_NCCL_HISTORY];
    bool sums = call->kind == DT_NCCL_ALL_REDUCE || call->kind == DT_NCCL_REDUCE_SCATTER;
    dt_error why = DT_ERROR_INIT;
    dt_status st = DT_OK;

    DT_TRY(tell(nccl, err));
    entry->number = nccl->history.queued + 1;
    entry->kind = call->kind;
    entry->bytes = call->elems * (sums ? (int64_t)dt_dtype_bytes(call->dtype) : 1);
    entry->queued_at = dt_clock_monotonic_seconds();
    if (nccl->link->call(nccl->nccl, call, nccl->queue, &why) != DT_OK)
        fail(nccl, &why);
    DT_TRY(wait_until_taken(nccl, err));
    if (nccl->device->queues->record(nccl->device, entry->event, nccl->queue, &why) != DT_OK)
        fail(nccl, &why);
    DT_TRY(tell(nccl, err));
    nccl->history.queued++;
out:
    return st;
}

static dt_status queue(dt_comm *comm, const dt_nccl_call *call, int64_t sent_bytes, dt_error *err)
{
    nccl_state *nccl = comm->state;
    dt_status st;

    if (call->elems == 0)
        return DT_OK;
    pthread_mutex_lock(&nccl->lock);
    st = take(nccl, call, err);
    pthread_mutex_unlock(&nccl->lock);
    if (st == DT_OK)
        comm->sent_bytes += sent_bytes;
    return st;
}

static dt_status nccl_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                 dt_error *err)
{
    dt_nccl_call call = {
        .kind = DT_NCCL_ALL_REDUCE, .out = data, .in = data, .elems = elems, .dtype = dtype};
    int64_t bytes = elems * (int64_t)dt_dtype_bytes(dtype);

    return queue(comm, &call, dt_comm_all_reduce_bytes(comm->world_size, bytes), err);
}

static dt_status nccl_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                     dt_dtype dtype, dt_error *err)
{
    dt_nccl_call call = {
        .kind = DT_NCCL_REDUCE_SCATTER, .out = out, .in = in, .elems = elems, .dtype = dtype};
    int64_t bytes = elems * (int64_t)dt_dtype_bytes(dtype);

    return queue(comm, &call, (comm->world_size - 1) * bytes, err);
}

static dt_status nccl_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                 dt_error *err)
{
    dt_nccl_call call = {.kind = DT_NCCL_ALL_GATHER, .out = out, .in = in, .elems = (int64_t)bytes};

    return queue(comm, &call, (comm->world_size - 1) * (int64_t)bytes, err);
}

/* In a ring every rank but the last passes the data on. */
static dt_status nccl_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                dt_error *err)
{
    dt_nccl_call call = {
        .kind = DT_NCCL_BROADCAST, .out = data, .in = data, .elems = (int64_t)bytes, .root = root};
    bool last = comm->rank == (root + comm->world_size - 1) % comm->world_size;

    return queue(comm, &call, last ? 0 : (int64_t)bytes, err);
}

static dt_status nccl_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    nccl_state *nccl = comm->state;

    return nccl->host.all_reduce_f64(&nccl->host, data, elems, err);
}

/* Wait until everything queued is done, on all ranks. */
static dt_status nccl_barrier(dt_comm *comm, dt_error *err)
{
    nccl_state *nccl = comm->state;
    dt_status st = DT_OK;

    DT_TRY(comm->finish(comm, err));
    DT_TRY(nccl->host.barrier(&nccl->host, err));
out:
    return st;
}

/* The watching thread ensures that the wait ends. */
static dt_status nccl_finish(dt_comm *comm, dt_error *err)
{
    nccl_state *nccl = comm->state;
    dt_error why = DT_ERROR_INIT;
    dt_device_event *last;
    int64_t number;
    dt_status st;

    pthread_mutex_lock(&nccl->lock);
    number = nccl->history.queued;
    last = nccl->history.entries[number % DT_NCCL_HISTORY].event;
    pthread_mutex_unlock(&nccl->lock);
    st = number > 0 ? nccl->device->queues->wait(nccl->device, last, &why) : DT_OK;
    pthread_mutex_lock(&nccl->lock);
    if (st != DT_OK)
        fail(nccl, &why);
    else if (nccl->failure.code == DT_OK && nccl->history.reached < number)
        nccl->history.reached = number;
    st = tell(nccl, err); /* aborted collectives count as done too */
    pthread_mutex_unlock(&nccl->lock);
    return st;
}

/* --- opening and closing */

static void release(nccl_state *nccl)
{
    if (nccl->watched) {
        pthread_mutex_lock(&nccl->lock);
        nccl->closing = true;
        pthread_cond_broadcast(&nccl->changed);
        pthread_mutex_unlock(&nccl->lock);
        pthread_join(nccl->watcher, NULL);
    }
    if (nccl->nccl != NULL)
        nccl->link->abort(nccl->nccl);
    nccl->device->queues->close(nccl->device, nccl->queue);
    for (int i = 0; i < DT_NCCL_HISTORY; i++)
        nccl->device->queues->event_close(nccl->device, nccl->history.entries[i].event);
    dt_comm_close(&nccl->host);
    pthread_cond_destroy(&nccl->changed);
    pthread_mutex_destroy(&nccl->lock);
    free(nccl->peers);
    free(nccl);
}

/* Waits for what is queued while the peers live: they may need it. */
static void nccl_close(dt_comm *comm)
{
    dt_error err = DT_ERROR_INIT;

    (void)nccl_finish(comm, &err);
    release(comm->state);
}

static dt_status prepare(nccl_state *nccl, const dt_nccl_options *options, dt_error *err)
{
    dt_device *device = options->device;
    size_t count = (size_t)options->peer_count;
    dt_status st = DT_OK;

    nccl->peers = calloc(count + 1, sizeof(*nccl->peers));
    if (nccl->peers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the communicator '%s'", options->name);
    if (count > 0)
        memcpy(nccl->peers, options->peers, count * sizeof(*nccl->peers));
    nccl->peer_count = options->peer_count;
    DT_TRY(device->queues->open(device, &nccl->queue, err));
    for (int i = 0; i < DT_NCCL_HISTORY; i++)
        DT_TRY(device->queues->event_open(device, &nccl->history.entries[i].event, err));
out:
    return st;
}

static dt_status connect_all(nccl_state *nccl, const uint8_t *id, dt_error *err)
{
    dt_error why = DT_ERROR_INIT;
    dt_status st;

    pthread_mutex_lock(&nccl->lock);
    st = nccl->link->connect(&nccl->nccl, nccl->device, id, nccl->rank, nccl->world_size, &why);
    if (st != DT_OK)
        fail(nccl, &why);
    st = wait_until_taken(nccl, err);
    pthread_mutex_unlock(&nccl->lock);
    return st;
}

static dt_status start_watching(nccl_state *nccl, dt_error *err)
{
    int failed = pthread_create(&nccl->watcher, NULL, watch, nccl);

    if (failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot start the thread that watches a communicator: %s",
                       strerror(failed));
    nccl->watched = true;
    return DT_OK;
}

static nccl_state *state_new(const dt_nccl_options *options)
{
    nccl_state *nccl = calloc(1, sizeof(*nccl));
    pthread_condattr_t monotonic;

    if (nccl == NULL)
        return NULL;
    nccl->link = options->link;
    nccl->device = options->device;
    nccl->name = options->name;
    nccl->rank = options->rank;
    nccl->world_size = options->world_size;
    nccl->timeout_seconds = options->timeout_seconds;
    pthread_mutex_init(&nccl->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&nccl->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return nccl;
}

dt_status dt_nccl_open(dt_comm *out, const dt_nccl_options *options, const uint8_t *id,
                       dt_comm *host, dt_error *err)
{
    nccl_state *nccl = state_new(options);
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    if (nccl == NULL) {
        dt_comm_close(host);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the communicator '%s'", options->name);
    }
    nccl->host = *host;
    memset(host, 0, sizeof(*host));
    DT_TRY(prepare(nccl, options, err));
    DT_TRY(connect_all(nccl, id, err));
    DT_TRY(start_watching(nccl, err));
    *out = (dt_comm){
        .name = "nccl",
        .rank = options->rank,
        .world_size = options->world_size,
        .state = nccl,
        .queue = nccl->queue,
        .all_reduce = nccl_all_reduce,
        .all_reduce_f64 = nccl_all_reduce_f64,
        .reduce_scatter = nccl_reduce_scatter,
        .all_gather = nccl_all_gather,
        .broadcast = nccl_broadcast,
        .barrier = nccl_barrier,
        .finish = nccl_finish,
        .close = nccl_close,
    };
out:
    if (st != DT_OK)
        release(nccl);
    return st;
}
