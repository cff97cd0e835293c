/* spread: calls a function for many nodes in parallel. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "runner/node_setup/probe/probe_int.h"

#include "base/banned.h"

enum { THREADS_MAX = 32 };

typedef struct spread {
    _Atomic int64_t next;
    int64_t count;
    void (*work)(void *context, int64_t i);
    void *context;
} spread;

static void *spread_thread(void *argument)
{
    spread *all = argument;

    for (int64_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;)
        all->work(all->context, i);
    return NULL;
}

void dt_probe_spread(int64_t count, void (*work)(void *context, int64_t i), void *context)
{
    spread all = {.count = count, .work = work, .context = context};
    pthread_t threads[THREADS_MAX];
    int started = 0;

    while (started < THREADS_MAX && started + 1 < count &&
           pthread_create(&threads[started], NULL, spread_thread, &all) == 0)
        started++;
    spread_thread(&all); /* this thread works too, also if no thread could be created */
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
