/* 2,000 random days of a queue (or as many as the first argument or DTRUN_TEST_DAYS says): runs with and without nodes
 * arrive with priorities, dependencies, groups and times; machines are drained and opened; the arbiter dies between two
 * actions, and supervisors before they answer. After every decision:
 *   owners      no GPU and no processor has two runs, and nothing starts where or when it may not
 *   inversions  a run that starts does not delay the first run that waits for slots (where the expected ends are right)
 *   preemption  only lower priorities whose guaranteed time is over, and none that is not needed
 * and over the day: no step is done twice, a run is preempted at most as often as doubled guarantees allow, and all runs
 * have ended by the time that all of them would take one after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/queue/order.h"

enum { JOBS = 40, MACHINES = 4, NEEDS = 3, GROUPS = 2 };
enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

typedef enum job_state { COMING, WAITING, RUNNING, STOPPING, ENDED, DROPPED } job_state;

typedef struct job {
    dt_order_need needs[NEEDS];
    dt_order_run run; /* what the arbiter is told */
    char id[24];
    job_state state;
    int64_t arrives_ms, after;                     /* after: job, or -1 */
    int64_t steps, saved_steps, steps_done_in_all; /* a step takes a second */
    int64_t started_ms, stopped_ms;                /* stopped_ms: when the stop is over */
    int64_t preemptions;
    int64_t release_ms;
    bool fails;
    dt_order_part parts[MACHINES];
} job;

typedef struct day {
    dt_order_machine machines[MACHINES];
    int64_t opens_ms[MACHINES];
    job jobs[JOBS];
    int64_t machine_count, job_count, now_ms, arbiter_ms; /* the arbiter is away until then */
    int64_t group_limits[GROUPS], lost_ms, rush_ms;       /* rush_ms: all arrive within this time */
    bool exact, strict;
    dt_arena arena;
} day;

static uint64_t seed;
static int64_t day_number;
static int64_t decisions, preemptions, overtakes, starts;

static int64_t below(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static bool chance(int percent)
{
    return below(100) < percent;
}

/* --- a random day */

static void make_needs(day *d, job *j)
{
    bool gpus = chance(60);

    if (chance(50)) { /* without nodes */
        j->run.units = 1 + below(chance(80) ? 4 : 12);
        j->run.unit_gpus = gpus;
        j->run.unit_cores = gpus ? 0 : 1 + below(3);
        return;
    }
    j->run.needs = j->needs;
    j->run.need_count = 1 + below(d->machine_count < NEEDS ? d->machine_count : NEEDS);
    for (int64_t i = 0, first = below(d->machine_count); i < j->run.need_count; i++) {
        dt_order_need *need = &j->needs[i];

        need->machine = (first + i) % d->machine_count;
        need->gpus = gpus ? 1 + below(4) : 0;
        need->from_gpu = gpus && chance(20) ? below(3) : 0;
        need->cores = gpus ? 0 : 1 + below(8);
    }
    if (chance(15))
        j->run.wanted = 1 + below(j->run.need_count);
}

static void make_job(day *d, int64_t index)
{
    job *j = &d->jobs[index];

    *j = (job){.after = -1, .run = {.group = -1}};
    snprintf(j->id, sizeof(j->id), "r%02lld", (long long)index);
    j->run.id = j->id;
    j->run.place = index;
    j->run.priority = chance(60) ? 0 : below(4);
    j->run.preemptible = chance(80);
    j->run.waits = true;
    j->arrives_ms = below(d->rush_ms);
    j->steps = 1 + below(chance(70) ? 1800 : 6 * 3600);
    j->fails = chance(5);
    if (chance(10))
        j->run.not_before_ms = j->arrives_ms + below(4 * HOUR);
    if (chance(10) && index > 0)
        j->after = below(index);
    if (chance(20))
        j->run.group = below(GROUPS);
    if (chance(5))
        j->release_ms = j->arrives_ms + below(3 * HOUR);
    make_needs(d, j);
}

static void make_day(day *d)
{
    d->machine_count = 1 + below(MACHINES);
    d->exact = chance(70);
    d->strict = chance(15);
    d->rush_ms = chance(30) ? DAY : chance(50) ? 4 * HOUR : HOUR;
    for (int64_t i = 0; i < d->machine_count; i++)
        d->machines[i] = (dt_order_machine){.name = "m",
                                            .gpus = below(9),
                                            .cores = 2 + below(15),
                                            .foreign = chance(10) ? (uint64_t)below(4) : 0,
                                            .shared = chance(85)};
    for (int64_t i = 0; i < GROUPS; i++)
        d->group_limits[i] = 1 + below(3);
    d->job_count = 1 + below(JOBS);
    for (int64_t i = 0; i < d->job_count; i++)
        make_job(d, i);
}

/* --- what the arbiter sees */

static int64_t steps_now(const day *d, const job *j)
{
    int64_t done = j->saved_steps + (d->now_ms - j->started_ms) / SECOND;

    return done < j->steps ? done : j->steps;
}

static void tell(const day *d, job *j)
{
    int64_t left_ms = (j->steps - j->saved_steps) * SECOND;
    const job *after = j->after >= 0 ? &d->jobs[j->after] : NULL;

    j->run.waits = j->state == WAITING;
    j->run.stopping = j->state == STOPPING;
    j->run.held = j->release_ms > d->now_ms;
    j->run.after = after == NULL || (after->state == ENDED && !after->fails) ? DT_AFTER_GOOD
                   : after->state == ENDED || after->state == DROPPED        ? DT_AFTER_FAILED
                                                                             : DT_AFTER_OPEN;
    j->run.lasts_ms = d->exact ? left_ms : chance(50) ? 0 : left_ms / 2 + below(left_ms + 1);
    j->run.end_ms = d->exact ? j->started_ms + left_ms : chance(50) ? 0 : d->now_ms + below(HOUR);
    j->run.started_ms = j->started_ms;
    j->run.guaranteed_until_ms = j->started_ms + (10 * MINUTE << j->preemptions);
    j->run.parts = j->run.waits ? NULL : j->parts;
    j->run.part_count = j->run.waits ? 0 : j->run.part_count;
}

/* Decides on the jobs whose numbers are in `of`. */
static dt_order decide(day *d, dt_order_run *runs, const int64_t *of, int64_t count)
{
    dt_order order = {.machines = d->machines,
                      .machine_count = d->machine_count,
                      .runs = runs,
                      .run_count = count,
                      .group_limits = d->group_limits,
                      .strict = d->strict,
                      .now_ms = d->now_ms};

    for (int64_t i = 0; i < count; i++)
        runs[i] = d->jobs[of[i]].run;
    dt_order_decide(&order, &d->arena);
    return order;
}

/* --- checks */

/* When the run could start at the earliest if nothing else waited: with the active runs, and those of `also`. */
static int64_t earliest_ms(day *d, const dt_order_run *run, const dt_order_run *runs, int64_t count,
                           const bool *also)
{
    int64_t best = INT64_MAX;

    for (int64_t at = -1; at < count; at++) {
        int64_t time_ms = at < 0 ? d->now_ms : 0, others = 0;
        dt_order_run left[JOBS + 1];
        dt_order alone = {.machines = d->machines,
                          .machine_count = d->machine_count,
                          .runs = left,
                          .group_limits = d->group_limits,
                          .now_ms = d->now_ms};

        if (at >= 0 && runs[at].waits && !also[at])
            continue;
        if (at >= 0)
            time_ms = runs[at].waits ? d->now_ms + runs[at].lasts_ms : runs[at].end_ms;
        for (int64_t i = 0; i < count; i++) {
            int64_t end_ms = runs[i].waits ? d->now_ms + runs[i].lasts_ms : runs[i].end_ms;

            if ((runs[i].waits && !also[i]) || (time_ms >= end_ms && time_ms > d->now_ms) ||
                runs[i].stopping || runs[i].verdict == DT_ORDER_PREEMPT) /* about to leave */
                continue;
            left[others] = runs[i];
            left[others].waits = false;
            left[others].stopping = left[others].preemptible = false;
            left[others++].group = -1;
        }
        left[others] = *run;
        left[others].parts = NULL;
        left[others].group = -1;
        alone.run_count = others + 1;
        dt_order_decide(&alone, &d->arena);
        if (left[others].verdict == DT_ORDER_START && time_ms < best)
            best = time_ms;
    }
    return best;
}

static bool comes_before(const dt_order_run *a, const dt_order_run *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->place < b->place;
}

static bool waits_for_slots(dt_order_verdict verdict)
{
    return verdict == DT_ORDER_FULL || verdict == DT_ORDER_GUARANTEED ||
           verdict == DT_ORDER_STOPPING || verdict == DT_ORDER_BEHIND;
}

static void check_inversions(day *d, const dt_order_run *runs, int64_t count)
{
    const dt_order_run *first = NULL;
    bool before[JOBS] = {0}, all[JOBS] = {0}, overtaken = false;

    for (int64_t i = 0; i < count; i++)
        if (runs[i].waits && waits_for_slots(runs[i].verdict) &&
            (first == NULL || comes_before(&runs[i], first)))
            first = &runs[i];
    if (first == NULL)
        return;
    for (int64_t i = 0; i < count; i++) {
        all[i] = runs[i].waits && runs[i].verdict == DT_ORDER_START;
        before[i] = all[i] && comes_before(&runs[i], first);
        overtaken = overtaken || (all[i] && !before[i]);
    }
    assert_true(!overtaken || !d->strict);
    if (!overtaken || !d->exact || first->verdict == DT_ORDER_STOPPING)
        return;
    overtakes++;
    if (earliest_ms(d, first, runs, count, all) > earliest_ms(d, first, runs, count, before))
        fail_msg("day %lld, %lld ms: run %s is delayed", (long long)day_number,
                 (long long)d->now_ms, first->id);
}

static void check_preemption(day *d, const dt_order_run *runs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const dt_order_run *victim = &runs[i], *by;

        if (victim->verdict != DT_ORDER_PREEMPT)
            continue;
        by = &runs[victim->about];
        assert_true(!victim->waits && !victim->stopping && victim->preemptible);
        assert_true(victim->priority < by->priority);
        assert_true(victim->guaranteed_until_ms <= d->now_ms);
        assert_int_equal(by->verdict, DT_ORDER_STOPPING);
    }
}

/* No run that the first waiting run preempts could have been spared. */
static void check_spared(day *d, const dt_order_run *runs, int64_t count)
{
    const dt_order_run *first = NULL;

    for (int64_t i = 0; i < count; i++)
        if (runs[i].waits && waits_for_slots(runs[i].verdict) &&
            (first == NULL || comes_before(&runs[i], first)))
            first = &runs[i];
    for (int64_t v = 0; first != NULL && v < count; v++) {
        dt_order_run left[JOBS + 1];
        int64_t others = 0;
        dt_order alone = {.machines = d->machines,
                          .machine_count = d->machine_count,
                          .runs = left,
                          .group_limits = d->group_limits,
                          .now_ms = d->now_ms};

        if (runs[v].verdict != DT_ORDER_PREEMPT || &runs[runs[v].about] != first)
            continue;
        for (int64_t i = 0; i < count; i++) {
            bool runs_on =
                !runs[i].waits && !runs[i].stopping &&
                (runs[i].verdict != DT_ORDER_PREEMPT || i == v || &runs[runs[i].about] != first);
            bool starts_before = runs[i].verdict == DT_ORDER_START && comes_before(&runs[i], first);

            if (!runs_on && !starts_before)
                continue;
            left[others] = runs[i];
            left[others].waits = left[others].preemptible = false;
            left[others++].group = -1;
        }
        left[others] = *first;
        left[others].parts = NULL;
        left[others].group = -1;
        alone.run_count = others + 1;
        dt_order_decide(&alone, &d->arena);
        assert_true(left[others].verdict != DT_ORDER_START);
    }
}

static void check_owners(const day *d)
{
    for (int64_t m = 0; m < d->machine_count; m++) {
        uint64_t used = 0;
        int64_t cores = 0;

        for (int64_t i = 0; i < d->job_count; i++) {
            const job *j = &d->jobs[i];

            for (int64_t p = 0;
                 (j->state == RUNNING || j->state == STOPPING) && p < j->run.part_count; p++) {
                if (j->parts[p].machine != m)
                    continue;
                assert_true((used & j->parts[p].gpus) == 0);
                used |= j->parts[p].gpus;
                cores += j->parts[p].cores;
            }
        }
        assert_true(cores <= d->machines[m].cores);
        assert_true(d->machines[m].gpus >= 64 || used >> d->machines[m].gpus == 0);
    }
}

/* What the run got is what it needs. */
static void check_place(const day *d, const job *j, const dt_order_run *run)
{
    int64_t gpus = 0, cores = 0, units = 0;

    for (int64_t p = 0; p < run->part_count; p++) {
        const dt_order_machine *machine = &d->machines[run->parts[p].machine];

        assert_false(machine->closed);
        assert_true((run->parts[p].gpus & machine->foreign) == 0);
        assert_true(run->need_count > 0 || machine->shared);
        gpus += __builtin_popcountll(run->parts[p].gpus);
        cores += run->parts[p].cores;
        units += run->parts[p].units;
    }
    assert_true(!run->held && run->not_before_ms <= d->now_ms && run->after == DT_AFTER_GOOD);
    if (run->need_count == 0) {
        assert_int_equal(units, run->units);
        assert_int_equal(gpus, run->units * run->unit_gpus);
        assert_int_equal(cores, run->units * run->unit_cores);
        return;
    }
    assert_int_equal(run->part_count, run->wanted > 0 ? run->wanted : run->need_count);
    assert_true(j->state == WAITING);
}

/* --- events */

static void start(day *d, job *j, const dt_order_run *run)
{
    check_place(d, j, run);
    memcpy(j->parts, run->parts, (size_t)run->part_count * sizeof(j->parts[0]));
    j->run.part_count = run->part_count;
    j->state = RUNNING;
    j->started_ms = d->now_ms;
    starts++;
}

/* Carries out decisions in random order, and stops in the middle if the arbiter dies. */
static void act(day *d, const dt_order_run *runs, const int64_t *of, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        job *j = &d->jobs[of[i]];

        if (runs[i].verdict != DT_ORDER_START && runs[i].verdict != DT_ORDER_PREEMPT &&
            runs[i].verdict != DT_ORDER_DROPPED)
            continue;
        if (chance(3)) {
            d->arbiter_ms = d->now_ms + 1 + below(10 * MINUTE);
            d->lost_ms += d->arbiter_ms - d->now_ms;
            return;
        }
        if (runs[i].verdict == DT_ORDER_DROPPED)
            j->state = DROPPED;
        else if (runs[i].verdict == DT_ORDER_START)
            start(d, j, &runs[i]);
        else if (chance(90)) { /* else its supervisor died before it answered */
            int64_t save_ms = below(20 * SECOND);

            j->state = STOPPING;
            j->stopped_ms = d->now_ms + SECOND + save_ms;
            d->lost_ms += SECOND + save_ms;
            preemptions++;
        } else {
            d->arbiter_ms = d->now_ms + SECOND; /* it asks again */
            d->lost_ms += SECOND;
        }
    }
}

static void end_run(day *d, job *j, bool preempted)
{
    int64_t steps = steps_now(d, j);

    j->steps_done_in_all += steps - j->saved_steps;
    j->saved_steps = steps;
    j->state = preempted && steps < j->steps ? WAITING : ENDED;
    j->preemptions += preempted;
    j->run.part_count = 0;
}

static void pass(day *d)
{
    for (int64_t i = 0; i < d->job_count; i++) {
        job *j = &d->jobs[i];

        if (j->state == COMING && j->arrives_ms <= d->now_ms)
            j->state = WAITING;
        if (j->state == RUNNING && steps_now(d, j) == j->steps)
            end_run(d, j, false);
        if (j->state == STOPPING && j->stopped_ms <= d->now_ms)
            end_run(d, j, true);
    }
    for (int64_t i = 0; i < d->machine_count; i++) {
        if (d->machines[i].closed && d->opens_ms[i] <= d->now_ms)
            d->machines[i].closed = false;
        if (!d->machines[i].closed && d->now_ms < DAY && chance(1)) {
            d->machines[i].closed = true;
            d->opens_ms[i] = d->now_ms + below(2 * HOUR);
            d->lost_ms += d->opens_ms[i] - d->now_ms;
        }
    }
}

static void sooner(int64_t *io, int64_t time_ms, int64_t now_ms)
{
    if (time_ms > now_ms && time_ms < *io)
        *io = time_ms;
}

/* The next time at which something happens; INT64_MAX: never. */
static int64_t next_ms(const day *d, int64_t wake_ms)
{
    int64_t next = INT64_MAX;

    for (int64_t i = 0; i < d->job_count; i++) {
        const job *j = &d->jobs[i];

        if (j->state == COMING)
            sooner(&next, j->arrives_ms, d->now_ms);
        if (j->state == RUNNING)
            sooner(&next, j->started_ms + (j->steps - j->saved_steps) * SECOND, d->now_ms);
        if (j->state == STOPPING)
            sooner(&next, j->stopped_ms, d->now_ms);
        if (j->state == WAITING)
            sooner(&next, j->release_ms, d->now_ms);
    }
    for (int64_t i = 0; i < d->machine_count; i++)
        if (d->machines[i].closed)
            sooner(&next, d->opens_ms[i], d->now_ms);
    sooner(&next, wake_ms, d->now_ms);
    sooner(&next, d->arbiter_ms, d->now_ms);
    return next;
}

/* A launch refuses what fits on no machine; nobody waits for GPUs that other programs use all day. */
static void drop_what_never_fits(day *d, const dt_order_run *runs, const int64_t *of, int64_t count)
{
    bool open = true;

    for (int64_t i = 0; i < d->machine_count; i++)
        open = open && !d->machines[i].closed;
    for (int64_t i = 0; i < count; i++)
        if (runs[i].verdict == DT_ORDER_NEVER || (runs[i].verdict == DT_ORDER_CLOSED && open))
            d->jobs[of[i]].state = DROPPED;
}

static void run_day(day *d)
{
    int64_t last_ms = 0, wake_ms = 0;
    bool again;

    for (d->now_ms = 0; d->now_ms != INT64_MAX;
         d->now_ms = again ? d->now_ms : next_ms(d, wake_ms)) {
        dt_order_run runs[JOBS];
        int64_t of[JOBS], count = 0;
        dt_order order;

        again = false;
        pass(d);
        check_owners(d);
        wake_ms = 0;
        if (d->arbiter_ms > d->now_ms)
            continue;
        for (int64_t i = 0; i < d->job_count; i++) {
            if (d->jobs[i].state != WAITING && d->jobs[i].state != RUNNING &&
                d->jobs[i].state != STOPPING)
                continue;
            tell(d, &d->jobs[i]);
            of[count++] = i;
        }
        order = decide(d, runs, of, count);
        wake_ms = order.wake_ms;
        decisions++;
        check_preemption(d, runs, count);
        check_inversions(d, runs, count);
        check_spared(d, runs, count);
        act(d, runs, of, count);
        drop_what_never_fits(d, runs, of, count);
        for (int64_t i = 0; i < count; i++) /* others may come after it */
            again = again || d->jobs[of[i]].state == DROPPED;
        check_owners(d);
        dt_arena_reset(&d->arena);
        last_ms = d->now_ms;
    }
    d->now_ms = last_ms;
}

static void check_day(const day *d)
{
    int64_t bound_ms = 2 * DAY + d->lost_ms;

    for (int64_t i = 0; i < d->job_count; i++) {
        const job *j = &d->jobs[i];
        int64_t guaranteed_ms = 0;

        bound_ms += j->steps * SECOND + 4 * HOUR;
        if (j->state != ENDED && j->state != DROPPED)
            fail_msg("run %s never ended: state %d", j->id, (int)j->state);
        if (j->state == DROPPED)
            continue;
        assert_int_equal(j->steps_done_in_all, j->steps);
        for (int64_t k = 0; k < j->preemptions; k++)
            guaranteed_ms += 10 * MINUTE << k;
        assert_true(guaranteed_ms <= j->steps * SECOND + j->preemptions * MINUTE);
    }
    assert_true(d->now_ms <= bound_ms);
}

static int64_t days = 2000;

static void days_are_good(void **state)
{
    (void)state;
    for (int64_t i = 0; i < days; i++) {
        day d = {0};

        day_number = i;
        seed = (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15) + 1;
        dt_arena_init(&d.arena, 0);
        make_day(&d);
        run_day(&d);
        check_day(&d);
        dt_arena_release(&d.arena);
    }
    printf("%lld days, %lld decisions, %lld starts, %lld preemptions, %lld decisions with runs "
           "that overtook\n",
           (long long)days, (long long)decisions, (long long)starts, (long long)preemptions,
           (long long)overtakes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(days_are_good)};
    const char *given = argc > 1 ? argv[1] : getenv("DTRUN_TEST_DAYS");

    if (given != NULL)
        days = strtoll(given, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
