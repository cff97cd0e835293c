#define _GNU_SOURCE
#include "engine/strategy/reducer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

typedef struct bucket {
    float *data;
    int64_t elems;
} bucket;

struct dt_reducer {
    dt_comm comm;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bucket *buckets; /* launched since the last wait, in order */
    int64_t capacity, launched, done;
    int64_t sent_bytes;
    bool closing;
    dt_error failure;
};

static void *reduce_buckets(void *self)
{
    dt_reducer *reducer = self;

    pthread_mutex_lock(&reducer->lock);
    for (;;) {
        dt_error err = DT_ERROR_INIT;
        bucket next;

        while (!reducer->closing &&
               (reducer->done == reducer->launched || reducer->failure.code != DT_OK))
            pthread_cond_wait(&reducer->changed, &reducer->lock);
        if (reducer->closing)
            break;
        next = reducer->buckets[reducer->done];
        pthread_mutex_unlock(&reducer->lock);
        reducer->comm.all_reduce(&reducer->comm, next.data, next.elems, DT_F32, &err);
        pthread_mutex_lock(&reducer->lock);
        reducer->done++;
        reducer->sent_bytes = reducer->comm.sent_bytes;
        reducer->failure = err;
        pthread_cond_broadcast(&reducer->changed);
    }
    pthread_mutex_unlock(&reducer->lock);
    return NULL;
}

dt_status dt_reducer_open(dt_reducer **out, dt_comm *comm, int64_t capacity, dt_error *err)
{
    dt_status st = DT_OK;
    dt_reducer *reducer;
    int failed;

    *out = NULL;
    reducer = calloc(1, sizeof(*reducer));
    if (reducer == NULL) {
        dt_comm_close(comm);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the communication thread");
    }
    reducer->comm = *comm;
    memset(comm, 0, sizeof(*comm));
    reducer->capacity = capacity;
    pthread_mutex_init(&reducer->lock, NULL);
    pthread_cond_init(&reducer->changed, NULL);
    reducer->buckets = calloc((size_t)capacity, sizeof(*reducer->buckets));
    if (reducer->buckets == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the communication thread");
    failed = pthread_create(&reducer->thread, NULL, reduce_buckets, reducer);
    if (failed != 0)
        DT_THROW(err, DT_ERR_IO, "cannot start the communication thread: %s", strerror(failed));
    reducer->started = true;
    *out = reducer;
    reducer = NULL;
out:
    dt_reducer_close(reducer);
    return st;
}

static dt_status tell_failure(const dt_reducer *reducer, dt_error *err)
{
    const dt_error *failure = &reducer->failure;

    if (failure->code == DT_OK)
        return DT_OK;
    return dt_error_set(err, failure->code, failure->file, failure->line, "%s", failure->message);
}

dt_status dt_reducer_launch(dt_reducer *reducer, float *data, int64_t elems, dt_error *err)
{
    dt_status st;

    pthread_mutex_lock(&reducer->lock);
    DT_ASSERT(reducer->launched < reducer->capacity);
    reducer->buckets[reducer->launched++] = (bucket){data, elems};
    st = tell_failure(reducer, err);
    pthread_cond_broadcast(&reducer->changed);
    pthread_mutex_unlock(&reducer->lock);
    return st;
}

dt_status dt_reducer_wait(dt_reducer *reducer, dt_error *err)
{
    dt_status st;

    pthread_mutex_lock(&reducer->lock);
    while (reducer->done < reducer->launched && reducer->failure.code == DT_OK)
        pthread_cond_wait(&reducer->changed, &reducer->lock);
    st = tell_failure(reducer, err);
    if (st == DT_OK)
        reducer->launched = reducer->done = 0;
    pthread_mutex_unlock(&reducer->lock);
    return st;
}

int64_t dt_reducer_sent_bytes(dt_reducer *reducer)
{
    int64_t sent_bytes;

    pthread_mutex_lock(&reducer->lock);
    sent_bytes = reducer->sent_bytes;
    pthread_mutex_unlock(&reducer->lock);
    return sent_bytes;
}

void dt_reducer_close(dt_reducer *reducer)
{
    if (reducer == NULL)
        return;
    if (reducer->started) {
        pthread_mutex_lock(&reducer->lock);
        reducer->closing = true;
        pthread_cond_broadcast(&reducer->changed);
        pthread_mutex_unlock(&reducer->lock);
        pthread_join(reducer->thread, NULL);
    }
    dt_comm_close(&reducer->comm);
    pthread_cond_destroy(&reducer->changed);
    pthread_mutex_destroy(&reducer->lock);
    free(reducer->buckets);
    free(reducer);
}
