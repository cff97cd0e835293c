/* bench_record: measures what the record of the steps (engine/record/) costs of a training step.
 *
 *     bench_record PLAN      a plan of one rank (dist_make_plan)
 *
 * Trains like `dtrun-engine train`, with the calls of the record timed (linked with --wrap). Prints microseconds a step in
 * the record, milliseconds a step, and the share; asserts nothing. The events go to stdout.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/commands.h"
#include "engine/record/record.h"

static double spent, begun, ended; /* seconds */
static int depth;
static long steps;

static double start(void)
{
    depth++;
    return dt_clock_monotonic_seconds();
}

static void stop(double since)
{
    if (--depth == 0)
        spent += dt_clock_monotonic_seconds() - since;
}

/* What the linker calls the true functions, and what it calls instead of them. */
void __real_dt_record_begin(dt_step_record *record, int64_t step, int64_t epoch, int64_t sample);
void __wrap_dt_record_begin(dt_step_record *record, int64_t step, int64_t epoch, int64_t sample);
void __real_dt_record_batch(dt_step_record *record, const dt_micro_batch *batch);
void __wrap_dt_record_batch(dt_step_record *record, const dt_micro_batch *batch);
dt_status __real_dt_record_gradients(dt_step_record *record, double norm, dt_error *err);
dt_status __wrap_dt_record_gradients(dt_step_record *record, double norm, dt_error *err);
dt_status __real_dt_record_update(dt_step_record *record, double loss, dt_error *err);
dt_status __wrap_dt_record_update(dt_step_record *record, double loss, dt_error *err);
dt_status __real_dt_record_end(dt_step_record *record, dt_error *err);
dt_status __wrap_dt_record_end(dt_step_record *record, dt_error *err);

void __wrap_dt_record_begin(dt_step_record *record, int64_t step, int64_t epoch, int64_t sample)
{
    double since = start();

    if (steps == 1) { /* the first step is slower */
        begun = since;
        spent = 0;
    }
    __real_dt_record_begin(record, step, epoch, sample);
    stop(since);
}

void __wrap_dt_record_batch(dt_step_record *record, const dt_micro_batch *batch)
{
    double since = start();

    __real_dt_record_batch(record, batch);
    stop(since);
}

dt_status __wrap_dt_record_gradients(dt_step_record *record, double norm, dt_error *err)
{
    double since = start();
    dt_status st = __real_dt_record_gradients(record, norm, err);

    stop(since);
    return st;
}

dt_status __wrap_dt_record_update(dt_step_record *record, double loss, dt_error *err)
{
    double since = start();
    dt_status st = __real_dt_record_update(record, loss, err);

    stop(since);
    return st;
}

dt_status __wrap_dt_record_end(dt_step_record *record, dt_error *err)
{
    double since = start();
    dt_status st = __real_dt_record_end(record, err);

    stop(since);
    ended = dt_clock_monotonic_seconds();
    steps++;
    return st;
}

int main(int argc, char **argv)
{
    static char train[] = "train", plan[] = "--plan";
    char *words[] = {train, plan, argc == 2 ? argv[1] : NULL, NULL};
    dt_error err = DT_ERROR_INIT;
    double counted;

    if (argc != 2 || dt_engine_train(3, words, &err) != DT_OK) {
        fprintf(stderr, "bench_record: %s\n", argc != 2 ? "one argument: PLAN" : err.message);
        return 1;
    }
    counted = (double)(steps - 1);
    fprintf(stderr, "record: %.1f us of a step of %.3f ms: %.3f %%, %ld steps\n",
            1e6 * spent / counted, 1e3 * (ended - begun) / counted, 100 * spent / (ended - begun),
            steps - 1);
    return 0;
}
