/* parallel: calls a function once per node, on several threads. */
#include <pthread.h>
#include <stdatomic.h>

#include "runner/node_setup/probe/probe_int.h"

enum { THREADS_MAX = 32 };

typedef struct calls {
    _Atomic int64_t next;
    int64_t count;
    void (*work)(void *context, int64_t i);
    void *context;
} calls;

static void *run_calls(void *argument)
{
    calls *all = argument;

    for (int64_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;)
        all->work(all->context, i);
    return NULL;
}

void dt_probe_parallel(int64_t count, void (*work)(void *context, int64_t i), void *context)
{
    calls all = {.count = count, .work = work, .context = context};
    pthread_t threads[THREADS_MAX];
    int started = 0;

    while (started < THREADS_MAX && started + 1 < count &&
           pthread_create(&threads[started], NULL, run_calls, &all) == 0)
        started++;
    run_calls(&all); /* also if no thread could be created */
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
