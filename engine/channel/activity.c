#include "engine/channel/activity.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "engine/channel/peers.h"
#include "engine/progress.h"
#include "engine/stopwatch.h"

#define WAITS 16 /* maximum number of concurrent waits; more are not reported */

/* A slot for one wait. turn: odd during the wait. A thread takes a slot by making turn odd; a
 * reader has read a consistent slot if turn has not changed meanwhile. */
typedef struct wait_slot {
    atomic_uint turn;
    _Atomic(const char *) what, whom;
    atomic_int_fast64_t number, bytes;
    _Atomic double since_seconds;
} wait_slot;

static struct {
    atomic_int_fast64_t step, micro_step, micro_steps;
    _Atomic(const char *) phase;
    wait_slot waits[WAITS];
} board;

void dt_activity_step(int64_t step)
{
    atomic_store_explicit(&board.step, step, memory_order_relaxed);
    dt_progress_made();
}

void dt_activity_phase(const char *phase)
{
    atomic_store_explicit(&board.phase, phase, memory_order_relaxed);
    dt_progress_made();
}

void dt_activity_micro_step(int64_t micro_step, int64_t micro_steps)
{
    atomic_store_explicit(&board.micro_step, micro_step, memory_order_relaxed);
    atomic_store_explicit(&board.micro_steps, micro_steps, memory_order_relaxed);
    dt_progress_made();
}

int dt_activity_wait_begin(const char *what, const char *whom, int64_t number, int64_t bytes)
{
    for (int i = 0; i < WAITS; i++) {
        wait_slot *slot = &board.waits[i];
        unsigned turn = atomic_load_explicit(&slot->turn, memory_order_relaxed);

        if (turn % 2 != 0 || !atomic_compare_exchange_strong(&slot->turn, &turn, turn + 1))
            continue;
        atomic_store(&slot->what, what);
        atomic_store(&slot->whom, whom);
        atomic_store(&slot->number, number);
        atomic_store(&slot->bytes, bytes);
        atomic_store(&slot->since_seconds, dt_clock_monotonic_seconds());
        return i;
    }
    return -1;
}

void dt_activity_wait_end(int place)
{
    dt_progress_made();
    if (place < 0)
        return;
    /* so that the next wait does not show our start time */
    atomic_store(&board.waits[place].since_seconds, 0);
    atomic_fetch_add(&board.waits[place].turn, 1);
}

typedef struct waiting {
    const char *what, *whom;
    int64_t number, bytes;
    double since_seconds; /* start of the wait; 0: not written yet */
} waiting;

/* Read a slot; false if there is no wait, or if it ended while it was read. */
static bool read_slot(waiting *out, wait_slot *slot)
{
    unsigned turn = atomic_load(&slot->turn);

    if (turn % 2 == 0)
        return false;
    *out = (waiting){atomic_load(&slot->what), atomic_load(&slot->whom), atomic_load(&slot->number),
                     atomic_load(&slot->bytes), atomic_load(&slot->since_seconds)};
    return atomic_load(&slot->turn) == turn && out->what != NULL && out->whom != NULL &&
           out->since_seconds > 0;
}

static json_t *numbers(const double *values, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(out, json_real(values[i]));
    return out;
}

/* Returns the sums of the stopwatch, null before the first step. */
static json_t *times(void)
{
    dt_stopwatch_machine machine;
    dt_stopwatch_sums sums;
    json_t *seconds;

    if (!dt_stopwatch_read(&sums, &machine))
        return json_null();
    seconds = json_object();
    for (int i = 0; i < DT_PLACE_COUNT; i++)
        json_object_set_new(seconds, dt_time_place_names[i],
                            numbers(sums.seconds[i], DT_PART_COUNT));
    return json_pack("{s:I, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "steps",
                     (json_int_t)sums.steps, "seconds", seconds, "backward_own",
                     numbers(sums.backward_own, sums.units), "products_flops", sums.products_flops,
                     "attention_flops", sums.attention_flops, "sent_bytes", sums.sent_bytes,
                     "best_bytes_per_second", sums.best_bytes_per_second, "flops_per_second",
                     machine.flops_per_second, "memory_bytes_per_second",
                     machine.memory_bytes_per_second, "step_bytes", machine.step_bytes, "peers",
                     dt_peers_report());
}

json_t *dt_activity_report(void)
{
    const char *phase = atomic_load_explicit(&board.phase, memory_order_relaxed);
    json_int_t step = (json_int_t)atomic_load_explicit(&board.step, memory_order_relaxed);
    waiting longest = {0}, one;
    json_t *text = json_null(), *seconds = json_null();
    char words[256];

    for (int i = 0; i < WAITS; i++)
        if (read_slot(&one, &board.waits[i]) &&
            (longest.what == NULL || one.since_seconds < longest.since_seconds))
            longest = one;
    if (longest.what != NULL) {
        snprintf(words, sizeof(words), "%s comm/%s #%lld, %.1f MB", longest.what, longest.whom,
                 (long long)longest.number, (double)longest.bytes / 1e6);
        text = json_string(words);
        seconds = json_real(dt_clock_monotonic_seconds() - longest.since_seconds);
    }
    return json_pack(
        "{s:s, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "event", "where", "step", step, "phase",
        phase != NULL ? phase : "start", "micro_step",
        (json_int_t)atomic_load_explicit(&board.micro_step, memory_order_relaxed), "micro_steps",
        (json_int_t)atomic_load_explicit(&board.micro_steps, memory_order_relaxed), "progress",
        (json_int_t)dt_progress_count(), "collective", text, "seconds", seconds, "times", times());
}
