/* expect: when waiting runs are expected to start, by letting time pass in a copy of what was decided about. */
#include <string.h>

#include "runner/queue/order.h"

/* The next time at which a run is expected to end; 0: none is. */
static int64_t next_end(const dt_order *order)
{
    int64_t next = 0;

    for (int64_t i = 0; i < order->run_count; i++)
        if (!order->runs[i].waits && order->runs[i].part_count > 0)
            next = next == 0 || (order->runs[i].end_ms != 0 && order->runs[i].end_ms < next)
                       ? order->runs[i].end_ms
                       : next;
    return next;
}

/* Lets runs that a decision starts run, and those end that are expected to by now. */
static void advance(dt_order *io)
{
    for (int64_t i = 0; i < io->run_count; i++) {
        dt_order_run *run = &io->runs[i];

        if (run->waits && run->verdict == DT_ORDER_START) {
            run->waits = false;
            run->started_ms = io->now_ms;
            run->end_ms = run->lasts_ms > 0 ? io->now_ms + run->lasts_ms : 0;
        } else if (!run->waits && run->end_ms != 0 && run->end_ms <= io->now_ms) {
            run->part_count = 0;
        }
        run->preemptible = false;
    }
}

void dt_order_expect(dt_order *io, int64_t decisions, dt_arena *arena)
{
    size_t size = (size_t)io->run_count * sizeof(*io->runs);
    dt_order later = *io;
    int64_t next;

    later.runs = dt_arena_alloc_array(arena, (size_t)io->run_count + 1, sizeof(*later.runs));
    memcpy(later.runs, io->runs, size);
    advance(&later);
    for (; decisions > 0 && (next = next_end(&later)) != 0; decisions--) {
        later.now_ms = next > later.now_ms ? next : later.now_ms;
        advance(&later);
        for (int64_t i = 0; i < io->run_count; i++)
            if (later.runs[i].waits)
                later.runs[i].parts = NULL; /* of the decision before */
        dt_order_decide(&later, arena);
        for (int64_t i = 0; i < io->run_count; i++)
            if (io->runs[i].waits && io->runs[i].expected_ms == 0 && later.runs[i].waits &&
                later.runs[i].verdict == DT_ORDER_START)
                io->runs[i].expected_ms = later.now_ms;
        advance(&later);
    }
}
