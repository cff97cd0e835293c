#include "runner/corpus/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define THREADS_MOST 64
#define TELL_SECONDS 5.0 /* between two progress messages */

typedef struct crew {
    const dt_corpus_job *job;
    int64_t bytes;
    atomic_llong next, done_bytes;
    atomic_bool failed;
    pthread_mutex_t mutex; /* protects the fields below */
    dt_error err;          /* the first error */
    dt_status st;
    double told_seconds;
} crew;

static void tell_progress(crew *all)
{
    double now = dt_clock_monotonic_seconds();
    char text[96];

    if (all->job->tell == NULL)
        return;
    pthread_mutex_lock(&all->mutex);
    if (now - all->told_seconds >= TELL_SECONDS) {
        all->told_seconds = now;
        snprintf(text, sizeof(text), "%s: %lld of %lld MB", all->job->doing,
                 (long long)(atomic_load(&all->done_bytes) >> 20), (long long)(all->bytes >> 20));
        all->job->tell(text);
    }
    pthread_mutex_unlock(&all->mutex);
}

static void close_worker(crew *all, void *worker, dt_status st, dt_error *err)
{
    dt_error late = DT_ERROR_INIT;
    dt_status closed;

    pthread_mutex_lock(&all->mutex);
    closed = all->job->close(worker, all->job->context, &late);
    if (st == DT_OK && closed != DT_OK) {
        st = closed;
        *err = late;
    }
    if (st != DT_OK && all->st == DT_OK) {
        all->st = st;
        all->err = *err;
    }
    pthread_mutex_unlock(&all->mutex);
    if (st != DT_OK)
        atomic_store(&all->failed, true);
}

static void *work(void *argument)
{
    crew *all = argument;
    const dt_corpus_parts *parts = all->job->parts;
    dt_error err = DT_ERROR_INIT;
    void *worker = NULL;
    dt_status st = all->job->open(&worker, all->job->context, &err);

    while (st == DT_OK && !atomic_load(&all->failed)) {
        int64_t index = atomic_fetch_add(&all->next, 1);

        if (index >= parts->count)
            break;
        st = all->job->part(worker, all->job->context, index, &err);
        atomic_fetch_add(&all->done_bytes,
                         (long long)(parts->items[index].end - parts->items[index].start));
        tell_progress(all);
    }
    close_worker(all, worker, st, &err);
    return NULL;
}

dt_status dt_corpus_run(const dt_corpus_job *job, dt_error *err)
{
    crew all = {.job = job,
                .mutex = PTHREAD_MUTEX_INITIALIZER,
                .told_seconds = dt_clock_monotonic_seconds()};
    long wanted = job->threads > 0 ? job->threads : sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[THREADS_MOST];
    int count = 0;

    for (int64_t i = 0; i < job->parts->count; i++)
        all.bytes += (int64_t)(job->parts->items[i].end - job->parts->items[i].start);
    wanted = wanted < THREADS_MOST ? wanted : THREADS_MOST;
    wanted = wanted < job->parts->count ? wanted : (long)job->parts->count;
    while (count < wanted - 1 && pthread_create(&threads[count], NULL, work, &all) == 0)
        count++;
    work(&all); /* this thread works too */
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return all.st == DT_OK ? DT_OK : DT_FAIL(err, all.st, "%s", all.err.message);
}
