/* bench_stopwatch: what it costs to know why a run is slow: a switch of the stopwatch, the end of a step, and the
 * agent's readings of a rank. Each figure is the least of 200 rounds. Usage: bench_stopwatch */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/channel/activity.h"
#include "engine/stopwatch.h"
#include "runner/agent/process/load.h"

enum { ROUNDS = 200 };

static void switch_twice(void)
{
    dt_stopwatch_part(dt_stopwatch_part(DT_PART_PRODUCTS));
}

static void end_step(void)
{
    dt_stopwatch_step(1);
}

static void report(void)
{
    json_decref(dt_activity_report());
}

static void read_load(void)
{
    dt_process_load load;

    (void)dt_process_load_read(&load, getpid(), "");
}

static void take_sample(void)
{
    dt_process_sample sample;

    dt_process_sample_read(&sample, getpid(), "");
}

static void measure(const char *what, void (*body)(void), int times, double per)
{
    double best = 0;

    for (int round = 0; round < ROUNDS; round++) {
        double start = dt_clock_monotonic_seconds(), seconds;

        for (int i = 0; i < times; i++)
            body();
        seconds = (dt_clock_monotonic_seconds() - start) / (times * per);
        best = round == 0 || seconds < best ? seconds : best;
    }
    printf("%-46s %8.3f us\n", what, best * 1e6);
}

int main(void)
{
    const dt_stopwatch_machine machine = {0};

    dt_stopwatch_begin(&machine);
    measure("a switch of place or part", switch_twice, 10000, 2);
    measure("the end of a step", end_step, 1000, 1);
    measure("an engine's answer, every 2 s", report, 10, 1);
    measure("the agent's reading of a rank, every 2 s", read_load, 10, 1);
    measure("the agent's sample of a program, 4 times a second", take_sample, 10, 1);
    return 0;
}
