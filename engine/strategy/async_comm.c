#define _GNU_SOURCE
#include "engine/strategy/async_comm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device/queue.h"

#include "base/banned.h"

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

/* Of a job, in the device's queues. */
typedef struct job_marks {
    dt_mark *ready; /* the ops before it are done */
    dt_mark *done;  /* where the communicator queues */
} job_marks;

struct dt_exchange {
    dt_comm comm;
    dt_device *device;
    pthread_t thread;
    bool started; /* not where the communicator queues */
    int64_t capacity;
    job_marks *marks; /* a ring: job i, counted from 0, is at i % capacity */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    job *jobs; /* a ring as well */
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
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "no collective %d", (int)next->kind);
}

static dt_status run_when_ready(dt_exchange *exchange, const job *next, dt_mark *ready,
                                dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(exchange->device->queues->wait(exchange->device, ready, err));
    DT_TRY(run(&exchange->comm, next, err));
out:
    return st;
}

static void *run_jobs(void *self)
{
    dt_exchange *exchange = self;

    pthread_mutex_lock(&exchange->lock);
    for (;;) {
        dt_error err = DT_ERROR_INIT;
        dt_mark *ready;
        job next;

        while (!exchange->closing &&
               (exchange->done == exchange->launched || exchange->failure.code != DT_OK))
            pthread_cond_wait(&exchange->changed, &exchange->lock);
        if (exchange->closing)
            break;
        next = exchange->jobs[exchange->done % exchange->capacity];
        ready = exchange->marks[exchange->done % exchange->capacity].ready;
        pthread_mutex_unlock(&exchange->lock);
        run_when_ready(exchange, &next, ready, &err);
        pthread_mutex_lock(&exchange->lock);
        exchange->done++;
        exchange->sent_bytes = exchange->comm.sent_bytes;
        exchange->failure = err;
        pthread_cond_broadcast(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->lock);
    return NULL;
}

static dt_status open_marks(dt_exchange *exchange, dt_error *err)
{
    dt_device *device = exchange->device;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < exchange->capacity; i++) {
        DT_TRY(device->queues->mark_open(device, &exchange->marks[i].ready, err));
        if (exchange->comm.queue != NULL)
            DT_TRY(device->queues->mark_open(device, &exchange->marks[i].done, err));
    }
out:
    return st;
}

static dt_status start_thread(dt_exchange *exchange, dt_error *err)
{
    int failed = pthread_create(&exchange->thread, NULL, run_jobs, exchange);

    if (failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot start the communication thread: %s",
                       strerror(failed));
    exchange->started = true;
    return DT_OK;
}

dt_status dt_exchange_open(dt_exchange **out, dt_comm *comm, dt_device *device, int64_t capacity,
                           dt_error *err)
{
    dt_status st = DT_OK;
    dt_exchange *exchange;

    *out = NULL;
    exchange = calloc(1, sizeof(*exchange));
    if (exchange == NULL) {
        dt_comm_close(comm);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the communication thread");
    }
    exchange->comm = *comm;
    memset(comm, 0, sizeof(*comm));
    exchange->device = device;
    exchange->capacity = capacity;
    pthread_mutex_init(&exchange->lock, NULL);
    pthread_cond_init(&exchange->changed, NULL);
    exchange->jobs = calloc((size_t)capacity, sizeof(*exchange->jobs));
    exchange->marks = calloc((size_t)capacity, sizeof(*exchange->marks));
    if (exchange->jobs == NULL || exchange->marks == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the communication thread");
    DT_TRY(open_marks(exchange, err));
    if (exchange->comm.queue == NULL)
        DT_TRY(start_thread(exchange, err));
    *out = exchange;
    exchange = NULL;
out:
    dt_exchange_close(exchange);
    return st;
}

static dt_status tell_failure(const dt_exchange *exchange, dt_error *err)
{
    const dt_error *failure = &exchange->failure;

    if (failure->code == DT_OK)
        return DT_OK;
    return dt_error_set(err, failure->code, failure->file, failure->line, "%s", failure->message);
}

/* For the thread. */
static dt_status hand_over(dt_exchange *exchange, job next, dt_error *err)
{
    dt_status st;

    pthread_mutex_lock(&exchange->lock);
    st = tell_failure(exchange, err);
    if (st == DT_OK) {
        DT_ASSERT(exchange->launched - exchange->done < exchange->capacity);
        exchange->jobs[exchange->launched++ % exchange->capacity] = next;
        pthread_cond_broadcast(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->lock);
    return st;
}

/* The communicator's queue follows the ops. */
static dt_status enqueue(dt_exchange *exchange, job next, dt_mark *ready, dt_mark *done,
                         dt_error *err)
{
    const dt_queues *queues = exchange->device->queues;
    dt_queue *queue = exchange->comm.queue;
    dt_status st = DT_OK;

    DT_TRY(queues->follow(exchange->device, queue, ready, err));
    DT_TRY(run(&exchange->comm, &next, err));
    DT_TRY(queues->record(exchange->device, done, queue, err));
    exchange->launched++;
    exchange->sent_bytes = exchange->comm.sent_bytes;
out:
    return st;
}

static dt_status launch(dt_exchange *exchange, dt_exchange_ticket *ticket, job next, dt_error *err)
{
    job_marks *marks = &exchange->marks[exchange->launched % exchange->capacity];
    dt_status st = DT_OK;

    DT_TRY(exchange->device->queues->record(exchange->device, marks->ready, NULL, err));
    if (exchange->comm.queue != NULL)
        DT_TRY(enqueue(exchange, next, marks->ready, marks->done, err));
    else
        DT_TRY(hand_over(exchange, next, err));
    if (ticket != NULL)
        *ticket = exchange->launched;
out:
    return st;
}

dt_status dt_exchange_all_reduce(dt_exchange *exchange, dt_exchange_ticket *ticket, void *data,
                                 int64_t elems, dt_dtype dtype, dt_error *err)
{
    return launch(exchange, ticket,
                  (job){.kind = ALL_REDUCE, .out = data, .elems = elems, .dtype = dtype}, err);
}

dt_status dt_exchange_reduce_scatter(dt_exchange *exchange, dt_exchange_ticket *ticket, void *out,
                                     const void *in, int64_t elems, dt_dtype dtype, dt_error *err)
{
    return launch(
        exchange, ticket,
        (job){.kind = REDUCE_SCATTER, .out = out, .in = in, .elems = elems, .dtype = dtype}, err);
}

dt_status dt_exchange_all_gather(dt_exchange *exchange, dt_exchange_ticket *ticket, void *out,
                                 const void *in, size_t bytes, dt_error *err)
{
    return launch(exchange, ticket, (job){.kind = ALL_GATHER, .out = out, .in = in, .bytes = bytes},
                  err);
}

dt_status dt_exchange_broadcast(dt_exchange *exchange, dt_exchange_ticket *ticket, void *data,
                                size_t bytes, int64_t root, dt_error *err)
{
    return launch(exchange, ticket,
                  (job){.kind = BROADCAST, .out = data, .bytes = bytes, .root = root}, err);
}

/* The ops follow the queue. A mark that a later job has taken since comes later still. */
static dt_status follow(dt_exchange *exchange, dt_exchange_ticket ticket, dt_error *err)
{
    dt_mark *done;

    if (ticket == 0)
        return DT_OK;
    done = exchange->marks[(ticket - 1) % exchange->capacity].done;
    return exchange->device->queues->follow(exchange->device, NULL, done, err);
}

dt_status dt_exchange_wait(dt_exchange *exchange, dt_exchange_ticket ticket, dt_error *err)
{
    dt_status st;

    DT_ASSERT(ticket <= exchange->launched);
    if (exchange->comm.queue != NULL)
        return follow(exchange, ticket, err);
    pthread_mutex_lock(&exchange->lock);
    while (exchange->done < ticket && exchange->failure.code == DT_OK)
        pthread_cond_wait(&exchange->changed, &exchange->lock);
    st = tell_failure(exchange, err);
    pthread_mutex_unlock(&exchange->lock);
    return st;
}

dt_status dt_exchange_wait_all(dt_exchange *exchange, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_exchange_wait(exchange, exchange->launched, err)); /* changed by this thread alone */
    if (exchange->comm.queue != NULL) /* whoever updates by it must know that it is whole */
        DT_TRY(exchange->comm.finish(&exchange->comm, err));
out:
    return st;
}

int64_t dt_exchange_sent_bytes(dt_exchange *exchange)
{
    int64_t sent_bytes;

    pthread_mutex_lock(&exchange->lock);
    sent_bytes = exchange->sent_bytes;
    pthread_mutex_unlock(&exchange->lock);
    return sent_bytes;
}

void dt_exchange_close(dt_exchange *exchange)
{
    if (exchange == NULL)
        return;
    if (exchange->started) {
        pthread_mutex_lock(&exchange->lock);
        exchange->closing = true;
        pthread_cond_broadcast(&exchange->changed);
        pthread_mutex_unlock(&exchange->lock);
        pthread_join(exchange->thread, NULL);
    }
    dt_comm_close(&exchange->comm);
    for (int64_t i = 0; exchange->marks != NULL && i < exchange->capacity; i++) {
        exchange->device->queues->mark_close(exchange->device, exchange->marks[i].ready);
        exchange->device->queues->mark_close(exchange->device, exchange->marks[i].done);
    }
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->lock);
    free(exchange->marks);
    free(exchange->jobs);
    free(exchange);
}
