#include "engine/strategy/strategy_int.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    dt_thread_pool *pool;
    int64_t index;
    pthread_t thread;
    dt_error err; /* error of the last task; read when all are done */
} member;

struct dt_thread_pool {
    member *members;
    int64_t count, started; /* started: running threads, including member 0's */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    int64_t tasks; /* tasks started so far */
    int64_t busy;  /* threads that have not finished the last task */
    dt_thread_pool_task task;
    void *self;
    bool closing;
};

static void *work(void *arg)
{
    member *me = arg;
    dt_thread_pool *pool = me->pool;
    int64_t done = 0;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        dt_thread_pool_task task;
        void *self;

        while (!pool->closing && pool->tasks == done)
            pthread_cond_wait(&pool->changed, &pool->lock);
        if (pool->closing)
            break;
        done = pool->tasks;
        task = pool->task;
        self = pool->self;
        pthread_mutex_unlock(&pool->lock);
        me->err = (dt_error)DT_ERROR_INIT;
        task(self, me->index, &me->err);
        pthread_mutex_lock(&pool->lock);
        pool->busy--;
        pthread_cond_broadcast(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

dt_status dt_thread_pool_open(dt_thread_pool **out, int64_t members, dt_error *err)
{
    dt_thread_pool *pool = calloc(1, sizeof(*pool));
    dt_status st = DT_OK;

    *out = NULL;
    if (pool == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the threads of %lld replicas",
                       (long long)members);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->count = members;
    pool->members = calloc((size_t)members, sizeof(*pool->members));
    if (pool->members == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the threads of %lld replicas",
                 (long long)members);
    for (pool->started = 1; pool->started < members; pool->started++) {
        member *next = &pool->members[pool->started];
        int failed;

        next->pool = pool;
        next->index = pool->started;
        failed = pthread_create(&next->thread, NULL, work, next);
        if (failed != 0)
            DT_THROW(err, DT_ERR_IO, "cannot start a thread for replica %lld: %s",
                     (long long)next->index, strerror(failed));
    }
    *out = pool;
    pool = NULL;
out:
    dt_thread_pool_close(pool);
    return st;
}

static dt_status tell_failure(const dt_thread_pool *pool, dt_error *err)
{
    for (int64_t i = 0; i < pool->count; i++) {
        const dt_error *failure = &pool->members[i].err;

        if (failure->code != DT_OK)
            return dt_error_set(err, failure->code, failure->file, failure->line, "%s",
                                failure->message);
    }
    return DT_OK;
}

dt_status dt_thread_pool_run(dt_thread_pool *pool, dt_thread_pool_task task, void *self,
                             dt_error *err)
{
    member *me = &pool->members[0];

    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->self = self;
    pool->busy = pool->count - 1;
    pool->tasks++;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);

    me->err = (dt_error)DT_ERROR_INIT;
    task(self, 0, &me->err);

    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return tell_failure(pool, err);
}

void dt_thread_pool_close(dt_thread_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (int64_t i = 1; i < pool->started; i++)
        pthread_join(pool->members[i].thread, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool->members);
    free(pool);
}
