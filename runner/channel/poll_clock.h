/* poll_clock: measures only time in which a message could have been received.
 *
 * After a process was stopped, a machine was suspended, or a call blocked, the monotonic clock has advanced and
 * timers are due, but messages that arrived meanwhile are still unread; silence measured by that clock would be
 * wrong. This clock advances once per turn of the loop, after input was read, by the time that the turn took,
 * but by at most clock_turn_seconds (runner/times.h). Between two reads of input it stands still.
 *
 * The loop must turn at least once in clock_turn_seconds (a repeating timer), or the clock is slow.
 * Units      seconds; only differences are meaningful. It starts at the monotonic clock's value
 * Threads    call from the loop's thread
 */
#ifndef DT_RUNNER_POLL_CLOCK_H
#define DT_RUNNER_POLL_CLOCK_H

#include <uv.h>

typedef struct dt_poll_clock {
    uv_check_t after_poll;
    double seconds;           /* value of the clock */
    double monotonic_seconds; /* time of its last advance */
} dt_poll_clock;

/* Does not keep the loop alive. After close, run the loop until the handle is closed. */
void dt_poll_clock_open(dt_poll_clock *clock, uv_loop_t *loop);
void dt_poll_clock_close(dt_poll_clock *clock);

/* Ends a turn at this value of the monotonic clock. */
void dt_poll_clock_turn(dt_poll_clock *clock, double monotonic_seconds);

#endif
