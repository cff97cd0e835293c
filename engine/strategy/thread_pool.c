#define _GNU_SOURCE
#include "engine/strategy/thread_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

typedef struct member {
    dt_team *team;
    int64_t index;
    pthread_t thread;
    dt_error err; /* of the last task; read when all are done */
} member;

struct dt_team {
    member *members;
    int64_t count, started; /* threads that run, member 0's included */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int64_t tasks; /* given so far */
    int64_t busy;  /* threads that have not done the last one */
    dt_team_task task;
    void *self;
    bool closing;
};

static void *work(void *arg)
{
    member *me = arg;
    dt_team *team = me->team;
    int64_t done = 0;

    pthread_mutex_lock(&team->lock);
    for (;;) {
        dt_team_task task;
        void *self;

        while (!team->closing && team->tasks == done)
            pthread_cond_wait(&team->changed, &team->lock);
        if (team->closing)
            break;
        done = team->tasks;
        task = team->task;
        self = team->self;
        pthread_mutex_unlock(&team->lock);
        me->err = (dt_error)DT_ERROR_INIT;
        task(self, me->index, &me->err);
        pthread_mutex_lock(&team->lock);
        team->busy--;
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

dt_status dt_team_open(dt_team **out, int64_t members, dt_error *err)
{
    dt_team *team = calloc(1, sizeof(*team));
    dt_status st = DT_OK;

    *out = NULL;
    if (team == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the threads of %lld replicas",
                       (long long)members);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    team->count = members;
    team->members = calloc((size_t)members, sizeof(*team->members));
    if (team->members == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the threads of %lld replicas",
                 (long long)members);
    for (team->started = 1; team->started < members; team->started++) {
        member *next = &team->members[team->started];
        int failed;

        next->team = team;
        next->index = team->started;
        failed = pthread_create(&next->thread, NULL, work, next);
        if (failed != 0)
            DT_THROW(err, DT_ERR_IO, "cannot start a thread for replica %lld: %s",
                     (long long)next->index, strerror(failed));
    }
    *out = team;
    team = NULL;
out:
    dt_team_close(team);
    return st;
}

static dt_status tell_failure(const dt_team *team, dt_error *err)
{
    for (int64_t i = 0; i < team->count; i++) {
        const dt_error *failure = &team->members[i].err;

        if (failure->code != DT_OK)
            return dt_error_set(err, failure->code, failure->file, failure->line, "%s",
                                failure->message);
    }
    return DT_OK;
}

dt_status dt_team_run(dt_team *team, dt_team_task task, void *self, dt_error *err)
{
    member *me = &team->members[0];

    pthread_mutex_lock(&team->lock);
    team->task = task;
    team->self = self;
    team->busy = team->count - 1;
    team->tasks++;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);

    me->err = (dt_error)DT_ERROR_INIT;
    task(self, 0, &me->err);

    pthread_mutex_lock(&team->lock);
    while (team->busy > 0)
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
    return tell_failure(team, err);
}

void dt_team_close(dt_team *team)
{
    if (team == NULL)
        return;
    pthread_mutex_lock(&team->lock);
    team->closing = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    for (int64_t i = 1; i < team->started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    free(team->members);
    free(team);
}
