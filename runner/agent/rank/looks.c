/* looks: does what the programs of a command need from time to time: limits of time, and looks at their files, in a
 * thread, since a file system can hang.
 */
#include "base/clock.h"
#include "runner/agent/agent_int.h"

/* --- a look */

static void on_thread(uv_work_t *work)
{
    dt_agent_rank *rank = work->data;

    dt_program_look(rank->program);
}

static void on_looked(uv_work_t *work, int unused)
{
    dt_agent_rank *rank = work->data;

    rank->look.running = false;
    if (rank->look_given_up)
        return;
    dt_program_looked(rank->program);
    rank->look.next_seconds =
        dt_clock_monotonic_seconds() + 1e-3 * (double)dt_program_look_ms(rank->program);
    rank->look.done(rank);
    dt_agent_programs_plan(rank->agent);
}

void dt_agent_look(dt_agent_rank *rank, void (*done)(dt_agent_rank *rank))
{
    rank->look.done = done;
    rank->look.work.data = rank;
    rank->look.running =
        uv_queue_work(&rank->agent->loop, &rank->look.work, on_thread, on_looked) == 0;
}

static void on_usual_look(dt_agent_rank *rank) {}

/* --- the timer */

/* Returns the milliseconds until a look is due; -1: none is. */
static int64_t look_in_ms(const dt_agent_rank *rank)
{
    double left = rank->look.next_seconds - dt_clock_monotonic_seconds();

    if (rank->look.running || rank->look.next_seconds == 0 ||
        dt_program_look_ms(rank->program) == 0)
        return -1;
    return left > 0 ? (int64_t)(1e3 * left) + 1 : 0;
}

static void on_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (rank->program == NULL || !rank->running)
            continue;
        dt_program_tick(rank->program);
        if (look_in_ms(rank) == 0)
            dt_agent_look(rank, on_usual_look);
    }
    dt_agent_programs_plan(agent);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

void dt_agent_programs_plan(dt_agent *agent)
{
    int64_t next_ms = -1;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (rank->program != NULL && rank->running)
            next_ms = sooner(sooner(next_ms, dt_program_tick_ms(rank->program)), look_in_ms(rank));
    }
    if (next_ms < 0)
        uv_timer_stop(&agent->program_timer);
    else
        uv_timer_start(&agent->program_timer, on_timer, (uint64_t)next_ms, 0);
}
