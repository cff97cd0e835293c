#include "engine/strategy/strategy_int.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device/queue.h"
#include "engine/stopwatch.h"

typedef enum job_kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST } job_kind;

typedef struct job {
    job_kind kind;
    void *out;
    const void *in;
    int64_t elems;
    dt_dtype dtype;
    size_t bytes;
    int64_t root;
} job;

/* Events of a job in the device's queues. */
typedef struct job_events {
    dt_device_event *ready; /* the ops before the job are done */
    dt_device_event *done;  /* the collective is done; only if the communicator queues */
} job_events;

struct dt_async_comm {
    dt_comm comm;
    dt_device *device;
    pthread_t thread;
    bool started; /* false if the communicator queues: there is no thread */
    int64_t capacity;
    job_events *events; /* a ring: job i, counted from 0, is at i % capacity */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    job *jobs; /* a ring of jobs, like `events` */
    int64_t launched, done;
    int64_t sent_bytes;
    bool closing;
    dt_error failure;
};

static dt_status run(dt_comm *comm, const job *next, dt_error *err)
{
    switch (next->kind) {
    case ALL_REDUCE:
        return comm->all_reduce(comm, next->out, next->elems, next->dtype, err);
    case REDUCE_SCATTER:
        return comm->reduce_scatter(comm, next->out, next->in, next->elems, next->dtype, err);
    case ALL_GATHER:
        return comm->all_gather(comm, next->out, next->in, next->bytes, err);
    case BROADCAST:
        return comm->broadcast(comm, next->out, next->bytes, next->root, err);
    }
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "unknown collective %d", (int)next->kind);
}

static dt_status run_when_ready(dt_async_comm *async, const job *next, dt_device_event *ready,
                                dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(async->device->queues->wait(async->device, ready, err));
    DT_TRY(run(&async->comm, next, err));
out:
    return st;
}

static void *run_jobs(void *self)
{
    dt_async_comm *async = self;

    pthread_mutex_lock(&async->lock);
    for (;;) {
        dt_error err = DT_ERROR_INIT;
        dt_device_event *ready;
        job next;

        while (!async->closing && (async->done == async->launched || async->failure.code != DT_OK))
            pthread_cond_wait(&async->changed, &async->lock);
        if (async->closing)
            break;
        next = async->jobs[async->done % async->capacity];
        ready = async->events[async->done % async->capacity].ready;
        pthread_mutex_unlock(&async->lock);
        run_when_ready(async, &next, ready, &err);
        pthread_mutex_lock(&async->lock);
        async->done++;
        async->sent_bytes = async->comm.sent_bytes;
        async->failure = err;
        pthread_cond_broadcast(&async->changed);
    }
    pthread_mutex_unlock(&async->lock);
    return NULL;
}

static dt_status open_events(dt_async_comm *async, dt_error *err)
{
    dt_device *device = async->device;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < async->capacity; i++) {
        DT_TRY(device->queues->event_open(device, &async->events[i].ready, err));
        if (async->comm.queue != NULL)
            DT_TRY(device->queues->event_open(device, &async->events[i].done, err));
    }
out:
    return st;
}

static dt_status start_thread(dt_async_comm *async, dt_error *err)
{
    int failed = pthread_create(&async->thread, NULL, run_jobs, async);

    if (failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot start the communication thread: %s",
                       strerror(failed));
    async->started = true;
    return DT_OK;
}

dt_status dt_async_comm_open(dt_async_comm **out, dt_comm *comm, dt_device *device,
                             int64_t capacity, dt_error *err)
{
    dt_status st = DT_OK;
    dt_async_comm *async;

    *out = NULL;
    async = calloc(1, sizeof(*async));
    if (async == NULL) {
        dt_comm_close(comm);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the communication thread");
    }
    async->comm = *comm;
    memset(comm, 0, sizeof(*comm));
    async->device = device;
    async->capacity = capacity;
    pthread_mutex_init(&async->lock, NULL);
    pthread_cond_init(&async->changed, NULL);
    async->jobs = calloc((size_t)capacity, sizeof(*async->jobs));
    async->events = calloc((size_t)capacity, sizeof(*async->events));
    if (async->jobs == NULL || async->events == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the communication thread");
    DT_TRY(open_events(async, err));
    if (async->comm.queue == NULL)
        DT_TRY(start_thread(async, err));
    *out = async;
    async = NULL;
out:
    dt_async_comm_close(async);
    return st;
}

static dt_status tell_failure(const dt_async_comm *async, dt_error *err)
{
    const dt_error *failure = &async->failure;

    if (failure->code == DT_OK)
        return DT_OK;
    return dt_error_set(err, failure->code, failure->file, failure->line, "%s", failure->message);
}

/* Hand a job to the thread. */
static dt_status hand_over(dt_async_comm *async, job next, dt_error *err)
{
    dt_status st;

    pthread_mutex_lock(&async->lock);
    st = tell_failure(async, err);
    if (st == DT_OK) {
        DT_ASSERT(async->launched - async->done < async->capacity);
        async->jobs[async->launched++ % async->capacity] = next;
        pthread_cond_broadcast(&async->changed);
    }
    pthread_mutex_unlock(&async->lock);
    return st;
}

/* Queue a collective after the ops: the communicator's queue waits for `ready`. */
static dt_status enqueue(dt_async_comm *async, job next, dt_device_event *ready,
                         dt_device_event *done, dt_error *err)
{
    const dt_queues *queues = async->device->queues;
    dt_queue *queue = async->comm.queue;
    dt_status st = DT_OK;

    DT_TRY(queues->follow(async->device, queue, ready, err));
    DT_TRY(run(&async->comm, &next, err));
    DT_TRY(queues->record(async->device, done, queue, err));
    async->launched++;
    async->sent_bytes = async->comm.sent_bytes;
out:
    return st;
}

static dt_status launch(dt_async_comm *async, dt_async_comm_ticket *ticket, job next, dt_error *err)
{
    job_events *events = &async->events[async->launched % async->capacity];
    dt_status st = DT_OK;

    DT_TRY(async->device->queues->record(async->device, events->ready, NULL, err));
    if (async->comm.queue != NULL)
        DT_TRY(enqueue(async, next, events->ready, events->done, err));
    else
        DT_TRY(hand_over(async, next, err));
    if (ticket != NULL)
        *ticket = async->launched;
out:
    return st;
}

dt_status dt_async_comm_all_reduce(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                   int64_t elems, dt_dtype dtype, dt_error *err)
{
    return launch(async, ticket,
                  (job){.kind = ALL_REDUCE, .out = data, .elems = elems, .dtype = dtype}, err);
}

dt_status dt_async_comm_reduce_scatter(dt_async_comm *async, dt_async_comm_ticket *ticket,
                                       void *out, const void *in, int64_t elems, dt_dtype dtype,
                                       dt_error *err)
{
    return launch(
        async, ticket,
        (job){.kind = REDUCE_SCATTER, .out = out, .in = in, .elems = elems, .dtype = dtype}, err);
}

dt_status dt_async_comm_all_gather(dt_async_comm *async, dt_async_comm_ticket *ticket, void *out,
                                   const void *in, size_t bytes, dt_error *err)
{
    return launch(async, ticket, (job){.kind = ALL_GATHER, .out = out, .in = in, .bytes = bytes},
                  err);
}

dt_status dt_async_comm_broadcast(dt_async_comm *async, dt_async_comm_ticket *ticket, void *data,
                                  size_t bytes, int64_t root, dt_error *err)
{
    return launch(async, ticket,
                  (job){.kind = BROADCAST, .out = data, .bytes = bytes, .root = root}, err);
}

/* Make later ops wait for a job. If a later job has reused its event, they wait longer, which is
 * correct too. */
static dt_status follow(dt_async_comm *async, dt_async_comm_ticket ticket, dt_error *err)
{
    dt_device_event *done;

    if (ticket == 0)
        return DT_OK;
    done = async->events[(ticket - 1) % async->capacity].done;
    return async->device->queues->follow(async->device, NULL, done, err);
}

dt_status dt_async_comm_wait(dt_async_comm *async, dt_async_comm_ticket ticket, dt_error *err)
{
    dt_status st;
    int part;

    DT_ASSERT(ticket <= async->launched);
    if (async->comm.queue != NULL)
        return follow(async, ticket, err);
    part = dt_stopwatch_part(DT_PART_BLOCKED);
    pthread_mutex_lock(&async->lock);
    while (async->done < ticket && async->failure.code == DT_OK)
        pthread_cond_wait(&async->changed, &async->lock);
    st = tell_failure(async, err);
    pthread_mutex_unlock(&async->lock);
    dt_stopwatch_part(part);
    return st;
}

dt_status dt_async_comm_wait_all(dt_async_comm *async, dt_error *err)
{
    dt_status st = DT_OK;

    /* `launched` changes only in this thread */
    DT_TRY(dt_async_comm_wait(async, async->launched, err));
    if (async->comm.queue != NULL) /* the caller acts on the result, so errors must be known */
        DT_TRY(async->comm.finish(&async->comm, err));
out:
    return st;
}

int64_t dt_async_comm_sent_bytes(dt_async_comm *async)
{
    int64_t sent_bytes;

    pthread_mutex_lock(&async->lock);
    sent_bytes = async->sent_bytes;
    pthread_mutex_unlock(&async->lock);
    return sent_bytes;
}

void dt_async_comm_close(dt_async_comm *async)
{
    if (async == NULL)
        return;
    if (async->started) {
        pthread_mutex_lock(&async->lock);
        async->closing = true;
        pthread_cond_broadcast(&async->changed);
        pthread_mutex_unlock(&async->lock);
        pthread_join(async->thread, NULL);
    }
    dt_comm_close(&async->comm);
    for (int64_t i = 0; async->events != NULL && i < async->capacity; i++) {
        async->device->queues->event_close(async->device, async->events[i].ready);
        async->device->queues->event_close(async->device, async->events[i].done);
    }
    pthread_cond_destroy(&async->changed);
    pthread_mutex_destroy(&async->lock);
    free(async->events);
    free(async->jobs);
    free(async);
}
