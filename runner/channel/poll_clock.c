#include "runner/channel/poll_clock.h"

#include "base/clock.h"
#include "runner/times.h"

void dt_poll_clock_turn(dt_poll_clock *clock, double monotonic_seconds)
{
    double took = monotonic_seconds - clock->monotonic_seconds,
           most = dt_times()->clock_turn_seconds;

    clock->monotonic_seconds = monotonic_seconds;
    if (took > 0)
        clock->seconds += took < most ? took : most;
}

static void on_polled(uv_check_t *check)
{
    dt_poll_clock_turn(check->data, dt_clock_monotonic_seconds());
}

void dt_poll_clock_open(dt_poll_clock *clock, uv_loop_t *loop)
{
    clock->seconds = clock->monotonic_seconds = dt_clock_monotonic_seconds();
    uv_check_init(loop, &clock->after_poll);
    clock->after_poll.data = clock;
    uv_check_start(&clock->after_poll, on_polled);
    uv_unref((uv_handle_t *)&clock->after_poll);
}

void dt_poll_clock_close(dt_poll_clock *clock)
{
    if (!uv_is_closing((uv_handle_t *)&clock->after_poll))
        uv_close((uv_handle_t *)&clock->after_poll, NULL);
}
