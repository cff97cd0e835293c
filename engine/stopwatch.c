#include "engine/stopwatch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

const char *const dt_time_place_names[DT_PLACE_COUNT] = {
    [DT_PLACE_LOOP] = "loop",         [DT_PLACE_INPUT] = "input",   [DT_PLACE_FORWARD] = "forward",
    [DT_PLACE_BACKWARD] = "backward", [DT_PLACE_UPDATE] = "update", [DT_PLACE_SAVE] = "save",
    [DT_PLACE_EVALUATE] = "evaluate",
};

const char *const dt_time_part_names[DT_PART_COUNT] = {
    [DT_PART_HOST] = "host",         [DT_PART_ARITHMETIC] = "arithmetic",
    [DT_PART_PRODUCTS] = "products", [DT_PART_ATTENTION] = "attention",
    [DT_PART_BLOCKED] = "blocked",
};

#define LARGE_BYTES ((int64_t)64 << 10) /* smaller messages tell a latency, not a bandwidth */

/* The clock of the timed thread. */
typedef struct clocked {
    dt_stopwatch_sums sums;
    int place, part, unit;
    double since_seconds;
} clocked;

/* A global of the process, like the activity: `running` belongs to the timed thread. */
static clocked running;
static _Thread_local bool is_timed;

static struct {
    pthread_mutex_t lock;
    dt_stopwatch_sums sums;
    dt_stopwatch_machine machine;
} published = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic double best_bytes_per_second;

/* slow: a build with tests delays a place of a rank: DTRUN_TEST_SLOW is "RANK PLACE SECONDS" or
 * "RANK backward.UNIT SECONDS". The rank sleeps whenever it enters the place. */
#ifdef DT_TEST_SLOW

static struct {
    int place, unit; /* unit -1: whenever the place is entered */
    double seconds;
} slow;

static void slow_read(void)
{
    const char *text = getenv("DTRUN_TEST_SLOW"), *rank = getenv("RANK");
    char place[32];
    int of, unit = -1;

    slow.seconds = 0;
    if (text == NULL || sscanf(text, "%d %31s %lf", &of, place, &slow.seconds) != 3 ||
        of != (rank != NULL ? (int)strtol(rank, NULL, 10) : 0)) {
        slow.seconds = 0;
        return;
    }
    if (strchr(place, '.') != NULL) {
        unit = (int)strtol(strchr(place, '.') + 1, NULL, 10);
        *strchr(place, '.') = '\0';
    }
    slow.unit = unit;
    slow.place = -1;
    for (int i = 0; i < DT_PLACE_COUNT; i++)
        if (strcmp(place, dt_time_place_names[i]) == 0)
            slow.place = i;
}

static void slow_down(int place, int unit)
{
    if (slow.seconds > 0 && place == slow.place && unit == slow.unit)
        dt_clock_sleep_seconds(slow.seconds);
}

#else

static void slow_read(void) {}

static void slow_down(int place, int unit) {}

#endif

void dt_stopwatch_begin(const dt_stopwatch_machine *machine)
{
    is_timed = true;
    running = (clocked){.place = DT_PLACE_LOOP,
                        .part = DT_PART_HOST,
                        .since_seconds = dt_clock_monotonic_seconds()};
    pthread_mutex_lock(&published.lock);
    memset(&published.sums, 0, sizeof(published.sums));
    published.machine = *machine;
    pthread_mutex_unlock(&published.lock);
    slow_read();
}

/* Add the time since the last switch to the current place and part. */
static void add(void)
{
    double now = dt_clock_monotonic_seconds(), passed = now - running.since_seconds;

    running.sums.seconds[running.place][running.part] += passed;
    if (running.place == DT_PLACE_BACKWARD && running.part != DT_PART_BLOCKED)
        running.sums.backward_own[running.unit] += passed;
    running.since_seconds = now;
}

int dt_stopwatch_place(int place)
{
    int previous = running.place;

    if (!is_timed)
        return place;
    add();
    running.place = place;
    slow_down(place, -1);
    return previous;
}

int dt_stopwatch_part(int part)
{
    int previous = running.part;

    if (!is_timed)
        return part;
    add();
    running.part = part;
    return previous;
}

void dt_stopwatch_unit(int unit, int units, bool backward)
{
    int at = units > DT_STOPWATCH_UNITS ? unit * DT_STOPWATCH_UNITS / units : unit;

    if (!is_timed || (running.place != DT_PLACE_FORWARD && running.place != DT_PLACE_BACKWARD))
        return;
    add();
    running.place = backward ? DT_PLACE_BACKWARD : DT_PLACE_FORWARD;
    running.unit = at;
    running.sums.units = units > DT_STOPWATCH_UNITS ? DT_STOPWATCH_UNITS : units;
    slow_down(running.place, unit);
}

void dt_stopwatch_flops(int part, double flops)
{
    if (!is_timed || running.place == DT_PLACE_EVALUATE)
        return;
    if (part == DT_PART_PRODUCTS)
        running.sums.products_flops += flops;
    else
        running.sums.attention_flops += flops;
}

void dt_stopwatch_step(int64_t sent_bytes)
{
    if (!is_timed)
        return;
    add();
    running.sums.steps++;
    running.sums.sent_bytes = (double)sent_bytes;
    running.sums.best_bytes_per_second =
        atomic_load_explicit(&best_bytes_per_second, memory_order_relaxed);
    pthread_mutex_lock(&published.lock);
    published.sums = running.sums;
    pthread_mutex_unlock(&published.lock);
}

void dt_stopwatch_message(int64_t bytes, double seconds)
{
    double rate, best = atomic_load_explicit(&best_bytes_per_second, memory_order_relaxed);

    if (bytes < LARGE_BYTES || seconds <= 0)
        return;
    rate = (double)bytes / seconds;
    while (rate > best && !atomic_compare_exchange_weak(&best_bytes_per_second, &best, rate))
        ;
}

double dt_stopwatch_blocked(void)
{
    double sum = 0;

    for (int i = 0; is_timed && i < DT_PLACE_EVALUATE; i++)
        sum += running.sums.seconds[i][DT_PART_BLOCKED];
    return sum;
}

bool dt_stopwatch_read(dt_stopwatch_sums *out, dt_stopwatch_machine *machine)
{
    pthread_mutex_lock(&published.lock);
    *out = published.sums;
    *machine = published.machine;
    pthread_mutex_unlock(&published.lock);
    return out->steps > 0;
}
