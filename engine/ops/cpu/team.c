#include "engine/ops/cpu/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* A waiting thread keeps its processor for YIELD_SECONDS, since ops follow each other within a few microseconds. Then it
 * yields to any other thread that is ready: the one that it waits for may be among them. It sleeps after SLEEP_SECONDS,
 * which are more than from the end of a token to the first product of the next. */
#define YIELD_SECONDS 10e-6
#define SLEEP_SECONDS 200e-6
#define SPINS         64 /* looks at the word between two looks at the clock */
#define AHEAD         32768 /* bytes that a waiting thread prefetches: they fit the second-level cache */
#define LINE          64

/* A word that threads wait for. */
typedef struct signal_word {
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} signal_word;

/* The pieces first .. end - 1 of a thread that nobody has taken, of call `call`, in one word, so that taking is one
 * exchange. The number of the call keeps a thread that was away from taking pieces of a later call. */
typedef struct range {
    _Atomic uint64_t word;
    char apart[LINE - sizeof(uint64_t)];
} range;

typedef struct member {
    dt_cpu_team *team;
    int index;
    pthread_t thread;
} member;

struct dt_cpu_team {
    int threads; /* those that run, with the caller */
    member *members;
    range *ranges; /* [threads] */
    _Atomic(dt_cpu_piece *) run;
    _Atomic(void *) self;
    _Atomic(const char *) coming;
    _Atomic size_t coming_bytes;
    atomic_bool closing;
    _Alignas(LINE) signal_word call; /* number of the current call */
    _Alignas(LINE) signal_word done; /* pieces of it that are done */
};

/* --- waiting */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Sleeps until the word is no longer `seen`. A thread that woke too early announces itself again: the one that woke it
 * has forgotten it. */
static void sleep_on(signal_word *word, uint32_t seen)
{
    for (;;) {
        atomic_fetch_add(&word->sleepers, 1);
        if (atomic_load(&word->value) != seen)
            return;
        syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
}

/* Wakes those that sleep, once for each time that they fell asleep. */
static void wake(signal_word *word)
{
    if (atomic_load(&word->sleepers) != 0 && atomic_exchange(&word->sleepers, 0) != 0)
        syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Returns the word's value once it is no longer `seen`. Prefetches up to AHEAD bytes from `next` on. */
static uint32_t await(signal_word *word, uint32_t seen, const char *next, size_t bytes)
{
    double begun = 0, now;
    uint32_t value;
    size_t at = 0;

    bytes = bytes < AHEAD ? bytes : AHEAD;
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            value = atomic_load_explicit(&word->value, memory_order_acquire);
            if (value != seen)
                return value;
            if (at < bytes)
                __builtin_prefetch(next + at, 0, 2);
            else
                relax();
            at += LINE;
        }
        now = dt_clock_monotonic_seconds();
        begun = begun == 0 ? now : begun;
        if (now - begun > SLEEP_SECONDS)
            sleep_on(word, seen);
        else if (now - begun > YIELD_SECONDS)
            sched_yield();
    }
}

/* --- taking pieces */

static uint64_t word_of(uint32_t call, int64_t first, int64_t end)
{
    return (uint64_t)call << 32 | (uint64_t)end << 16 | (uint64_t)first;
}

/* Takes the first piece of a range, or the last one; -1: none is left, or the call is over. */
static int64_t take(range *from, uint32_t call, bool last)
{
    uint64_t word = atomic_load_explicit(&from->word, memory_order_acquire), less;
    int64_t first, end;

    do {
        first = (int64_t)(word & 0xffff);
        end = (int64_t)(word >> 16 & 0xffff);
        if (word >> 32 != call || first >= end)
            return -1;
        less = last ? word_of(call, first, end - 1) : word_of(call, first + 1, end);
    } while (!atomic_compare_exchange_weak_explicit(&from->word, &word, less, memory_order_acq_rel,
                                                    memory_order_acquire));
    return last ? end - 1 : first;
}

/* Computes pieces until none is left: a thread's own, then those of others. */
static void work(dt_cpu_team *team, int thread, uint32_t call)
{
    dt_cpu_piece *run = atomic_load_explicit(&team->run, memory_order_relaxed);
    void *self = atomic_load_explicit(&team->self, memory_order_relaxed);
    uint32_t count = 0;
    int64_t piece;

    for (int t = 0; t < team->threads; t++) {
        int of = (thread + t) % team->threads;

        while ((piece = take(&team->ranges[of], call, t > 0)) >= 0) {
            run(self, thread, piece);
            count++;
        }
    }
    if (count > 0) {
        atomic_fetch_add(&team->done.value, count);
        wake(&team->done);
    }
}

/* The beginning of a thread's share of what comes. */
static dt_cpu_coming share_of(const dt_cpu_team *team, int thread)
{
    const char *data = atomic_load_explicit(&team->coming, memory_order_relaxed);
    size_t bytes = atomic_load_explicit(&team->coming_bytes, memory_order_relaxed);
    size_t each = bytes / (size_t)team->threads;

    if (data == NULL)
        return (dt_cpu_coming){0};
    return (dt_cpu_coming){data + (size_t)thread * each, each};
}

static void *serve(void *arg)
{
    member *me = arg;
    dt_cpu_team *team = me->team;
    dt_cpu_coming next = {0};
    uint32_t call = 0;

    for (;;) {
        call = await(&team->call, call, next.data, next.bytes);
        if (atomic_load(&team->closing))
            return NULL;
        work(team, me->index, call);
        next = share_of(team, me->index);
    }
}

void dt_cpu_team_run(dt_cpu_team *team, dt_cpu_piece *run, void *self, int64_t pieces,
                     dt_cpu_coming coming)
{
    uint32_t call = atomic_load_explicit(&team->call.value, memory_order_relaxed) + 1;
    uint32_t done;

    DT_ASSERT(pieces > 0 && pieces <= DT_CPU_TEAM_PIECES);
    atomic_store_explicit(&team->run, run, memory_order_relaxed);
    atomic_store_explicit(&team->self, self, memory_order_relaxed);
    atomic_store_explicit(&team->coming, coming.data, memory_order_relaxed);
    atomic_store_explicit(&team->coming_bytes, coming.bytes, memory_order_relaxed);
    atomic_store_explicit(&team->done.value, 0, memory_order_relaxed);
    for (int t = 0; t < team->threads; t++)
        atomic_store_explicit(
            &team->ranges[t].word,
            word_of(call, pieces * t / team->threads, pieces * (t + 1) / team->threads),
            memory_order_release);
    atomic_store(&team->call.value, call);
    wake(&team->call);
    work(team, 0, call);
    coming = share_of(team, 0);
    while ((done = atomic_load(&team->done.value)) != (uint32_t)pieces)
        (void)await(&team->done, done, coming.data, coming.bytes);
}

/* --- the threads */

static int start(dt_cpu_team *team, int threads)
{
    sigset_t every, before;
    int running = 1;

    /* signals are for the threads of the program */
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    for (; running < threads; running++) {
        member *next = &team->members[running];

        *next = (member){.team = team, .index = running};
        if (pthread_create(&next->thread, NULL, serve, next) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return running;
}

dt_cpu_team *dt_cpu_team_new(int threads)
{
    dt_cpu_team *team = aligned_alloc(LINE, (sizeof(*team) + LINE - 1) / LINE * LINE);

    if (team == NULL)
        return NULL;
    *team = (dt_cpu_team){.threads = threads};
    team->members = calloc((size_t)threads, sizeof(*team->members));
    team->ranges = aligned_alloc(LINE, (size_t)threads * sizeof(*team->ranges));
    if (team->members == NULL || team->ranges == NULL) {
        free(team->members);
        free(team->ranges);
        free(team);
        return NULL;
    }
    for (int t = 0; t < threads; t++)
        atomic_init(&team->ranges[t].word, 0);
    team->threads = start(team, threads);
    return team;
}

void dt_cpu_team_free(dt_cpu_team *team)
{
    if (team == NULL)
        return;
    atomic_store(&team->closing, true);
    atomic_fetch_add(&team->call.value, 1);
    wake(&team->call);
    for (int t = 1; t < team->threads; t++)
        pthread_join(team->members[t].thread, NULL);
    free(team->members);
    free(team->ranges);
    free(team);
}
