/* poll_clock: time in which something could have been heard.
 *
 * A process that is stopped, a machine that is paused or suspended, a call that blocks: afterwards
 * the monotonic clock has moved, timers are due, and what others said meanwhile has not been read
 * yet. Silence measured by that clock is none. This clock moves once in a turn of the loop, after
 * input was read, by what the turn took, but by clock_turn_seconds (runner/times.h) at most. Between two
 * reads of input it stands still, whatever timers see.
 *
 * The loop must turn at least once in clock_turn_seconds (a repeating timer), or the clock
 * is slow.
 * Units      seconds; only differences make sense. It began at the monotonic clock's value
 * Threads    the loop's
 */
#ifndef DT_RUNNER_POLL_CLOCK_H
#define DT_RUNNER_POLL_CLOCK_H

#include <uv.h>

typedef struct dt_poll_clock {
    uv_check_t after_poll;
    double seconds;           /* what the clock shows */
    double monotonic_seconds; /* when it last moved */
} dt_poll_clock;

/* Keeps the loop from ending no more than any idle handle; close() is the caller's to wait for. */
void dt_poll_clock_open(dt_poll_clock *clock, uv_loop_t *loop);
void dt_poll_clock_close(dt_poll_clock *clock);

/* A turn has ended at this value of the monotonic clock. */
void dt_poll_clock_turn(dt_poll_clock *clock, double monotonic_seconds);

#endif
