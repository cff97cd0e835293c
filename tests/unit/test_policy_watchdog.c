/* Each row describes the behaviour of two ranks by facts, two seconds apart, and the verdict that must follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/watchdog.h"

#define HANG  30.0
#define LIMIT 30.0
#define BEAT  2.0

/* Behaviour of a rank, as observed in each beat. */
typedef struct behaviour {
    const char *states; /* one letter a beat, repeated */
    double cpu_share;   /* of a processor; used in beats whose letter is not T */
    int advances_every; /* beats; 0: never */
    int works_every;    /* interval of I/O in beats; 0: none */
    bool waiting;       /* for other ranks */
    bool silent;        /* its engine never reports progress */
} behaviour;

static const behaviour computing = {"R", 1.0, 1, 0, false, false};
static const behaviour waiting = {"S", 0.001, 0, 0, true, false};
static const behaviour sleeping = {"S", 0, 0, 0, false, false};
static const behaviour stopped = {"T", 0, 0, 0, false, false};
static const behaviour stopped_while_waiting = {"T", 0, 0, 0, true, false};
static const behaviour blocked = {"D", 0, 0, 0, false, false};
static const behaviour debugged = {"t", 0, 0, 0, false, false};
static const behaviour slow_disk = {"D", 0.001, 0, 5, false, false};
static const behaviour slow_disk_in_sight = {"DS", 0.001, 0, 3, false, false};
static const behaviour long_op = {"R", 1.0, 0, 0, false, false};
static const behaviour long_op_on_a_tenth = {"R", 0.1, 0, 0, false, false};
static const behaviour starved = {"R", 0, 0, 0, false, false};
static const behaviour starved_at_times = {"RS", 0, 0, 0, false, false};
static const behaviour stopped_at_times = {"TTTTR", 1.0, 0, 0, false, false};
static const behaviour stopped_and_advancing = {"TTTTTTTTTR", 1.0, 10, 0, false, false};
static const behaviour halted_waiter = {"T", 0, 0, 0, true, false};
static const behaviour duty_cycle = {"T", 0.1, 0, 0, false, false}; /* always observed halted */
static const behaviour slow_op = {"R", 0.1, 8, 0, false, false};
static const behaviour silent_engine = {"R", 1.0, 0, 0, false, true};
static const behaviour silent_asleep = {"S", 0, 0, 0, false, true};
static const behaviour silent_stopped = {"T", 0, 0, 0, false, true};
static const behaviour polling = {"S", 0.3, 0, 0, true, false}; /* a transport that polls */
static const behaviour slow_network = {"S", 0.001, 10, 0, true, false};

typedef struct story {
    const char *name;
    const behaviour *ranks[2]; /* the second is NULL if there is one rank */
    double seconds;            /* duration of the story */
    dt_watchdog_verdict verdict;
    double after, before; /* if it hangs: the verdict comes between these times */
    int64_t rank;         /* if it hangs: the rank named in the verdict */
    double ideal_step_seconds, threads, limit; /* 0: the usual values */
    bool device;
    int exits_at; /* beat at which rank 1 exits; 0: never */
} story;

#define FINE  DT_WATCHDOG_FINE
#define SLOW  DT_WATCHDOG_SLOW
#define HANGS DT_WATCHDOG_HANGS

static const story stories[] = {
    /* nothing is unusual yet */
    {"not silent for long", {&stopped, &waiting}, 28, FINE, .rank = -1},

    /* slow but working, however long */
    {"both compute, and a step takes an hour", {&computing, &computing}, 3600, SLOW, .rank = -1},
    {"one computes, the other waits for it", {&computing, &waiting}, 3600, SLOW, .rank = -1},
    {"one that waits comes first", {&waiting, &computing}, 3600, SLOW, .rank = -1},
    {"a tenth of a core, an op in 16 s", {&slow_op, &waiting}, 3600, SLOW, .rank = -1},
    {"one op of five minutes on a tenth of a core",
     {&long_op_on_a_tenth, &waiting},
     600,
     SLOW,
     .rank = -1},
    {"one op of 40 minutes on a tenth of a core",
     {&long_op_on_a_tenth, &waiting},
     2400,
     SLOW,
     .rank = -1},
    {"one op of four minutes", {&long_op, &waiting}, 240, SLOW, .rank = -1},
    {"no processor for an hour", {&starved, &waiting}, 3600, SLOW, .rank = -1},
    {"no processor for all of them", {&starved, &starved}, 3600, SLOW, .rank = -1},
    {"a slow disk", {&slow_disk, &waiting}, 3600, SLOW, .rank = -1},
    {"a slow disk that is not always seen",
     {&slow_disk_in_sight, &waiting},
     3600,
     SLOW,
     .rank = -1},
    {"pages come from swap", {&slow_disk, &slow_disk}, 3600, SLOW, .rank = -1},
    {"halted four fifths of the time, for a while",
     {&stopped_at_times, &waiting},
     600,
     SLOW,
     .rank = -1},
    {"halted nine tenths of the time", {&stopped_and_advancing, &waiting}, 3600, SLOW, .rank = -1},
    {"halted nine tenths of the time, and never seen to run",
     {&duty_cycle, &waiting},
     1200,
     SLOW,
     .rank = -1},
    {"... and who waits for it is halted, too, with nothing to do when it is not",
     {&duty_cycle, &halted_waiter},
     1200,
     SLOW,
     .rank = -1},
    {"who waits is halted, the other has one op of four minutes",
     {&halted_waiter, &long_op},
     240,
     SLOW,
     .rank = -1},
    {"who waits is halted, the other starves", {&halted_waiter, &starved}, 3600, SLOW, .rank = -1},
    {"all of them halted so", {&duty_cycle, &duty_cycle}, 1200, SLOW, .rank = -1},
    {"a piece of a collective in 20 s", {&slow_network, &slow_network}, 3600, SLOW, .rank = -1},
    {"a transport that spins waits for one that computes",
     {&polling, &computing},
     3600,
     SLOW,
     .rank = -1},
    {"an engine that says nothing computes", {&silent_engine, NULL}, 290, SLOW, .rank = -1},
    {"a disk does not answer, for four minutes", {&blocked, &waiting}, 290, SLOW, .rank = -1},
    {"somebody looks with a debugger", {&debugged, &waiting}, 290, SLOW, .rank = -1},
    {"all wait, for less than twice the limit", {&waiting, &waiting}, 58, SLOW, .rank = -1},
    {"one sleeps, for less than twice the limit", {&sleeping, &waiting}, 58, SLOW, .rank = -1},
    {"a first step of a model for 64 threads: an op of 20 minutes",
     {&long_op, &waiting},
     1200,
     SLOW,
     .rank = -1,
     .ideal_step_seconds = 2,
     .threads = 64},
    {"a step that takes 67.84 s at least: an op of ten minutes",
     {&long_op, &waiting},
     600,
     SLOW,
     .rank = -1,
     .ideal_step_seconds = 67.84,
     .threads = 1},
    {"set-up: a file is drawn up by one thread for 29 minutes",
     {&long_op, &waiting},
     1740,
     FINE,
     .limit = 1800,
     .rank = -1},
    {"set-up: ... and for longer than is usual",
     {&computing, &waiting},
     3600,
     SLOW,
     .rank = -1,
     .limit = 1800},
    {"set-up: stopped, and nothing is assumed yet",
     {&stopped, &waiting},
     1740,
     FINE,
     .limit = 1800,
     .rank = -1},
    {"a kernel of four minutes on a card",
     {&sleeping, &sleeping},
     290,
     SLOW,
     .rank = -1,
     .device = true},
    {"a driver that polls for a kernel of four minutes",
     {&long_op, &long_op},
     290,
     SLOW,
     .rank = -1,
     .device = true},
    {"a card, and a step that takes a minute at least",
     {&sleeping, &sleeping},
     590,
     SLOW,
     .rank = -1,
     .device = true,
     .ideal_step_seconds = 60},
    {"the other has exited, this one computes",
     {&computing, &stopped},
     600,
     SLOW,
     .rank = -1,
     .exits_at = 1},

    /* hangs */
    {"stopped by a signal", {&stopped, &waiting}, 60, HANGS, .after = 30, .before = 36, .rank = 0},
    {"the second is", {&waiting, &stopped}, 60, HANGS, .after = 30, .before = 36, .rank = 1},
    {"both are", {&stopped, &stopped}, 60, HANGS, .after = 30, .before = 36, .rank = 0},
    {"stopped inside a collective",
     {&waiting, &stopped_while_waiting},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 1},
    {"stopped inside a collective, and the other waits by polling",
     {&polling, &stopped_while_waiting},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 1},
    {"both stopped inside a collective",
     {&stopped_while_waiting, &stopped_while_waiting},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 0},
    {"stopped, and the other waits by polling",
     {&polling, &stopped},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 1},
    {"stopped, and the other starves",
     {&starved, &stopped},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 1},
    {"stopped, of an engine that says nothing",
     {&silent_stopped, NULL},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 0},
    {"stopped, and steps usually take 20 s",
     {&stopped, &waiting},
     130,
     HANGS,
     .after = 100,
     .before = 106,
     .rank = 0,
     .limit = 100},
    {"all wait for each other",
     {&waiting, &waiting},
     100,
     HANGS,
     .after = 60,
     .before = 66,
     .rank = 0},
    {"the only one left waits for others",
     {&waiting, &waiting},
     100,
     HANGS,
     .after = 60,
     .before = 66,
     .rank = 0,
     .exits_at = 3},
    {"one sleeps, which the other waits for",
     {&waiting, &sleeping},
     100,
     HANGS,
     .after = 60,
     .before = 66,
     .rank = 1},
    {"both sleep", {&sleeping, &sleeping}, 100, HANGS, .after = 60, .before = 66, .rank = 0},
    {"one sleeps, of an engine that says nothing",
     {&silent_asleep, NULL},
     100,
     HANGS,
     .after = 60,
     .before = 66,
     .rank = 0},
    {"one sleeps on a busy machine",
     {&starved_at_times, &waiting},
     200,
     HANGS,
     .after = 118,
     .before = 130,
     .rank = 0},
    {"a disk never answers",
     {&blocked, &waiting},
     400,
     HANGS,
     .after = 300,
     .before = 306,
     .rank = 0},
    {"a disk never answers, and steps usually take a minute",
     {&blocked, &waiting},
     800,
     HANGS,
     .after = 600,
     .before = 606,
     .rank = 0,
     .limit = 300},
    {"a debugger was forgotten",
     {&debugged, &waiting},
     400,
     HANGS,
     .after = 300,
     .before = 306,
     .rank = 0},
    {"a loop without an end",
     {&long_op, &waiting},
     400,
     HANGS,
     .after = 300,
     .before = 306,
     .rank = 0},
    {"a loop without an end, and nobody hears how far it is",
     {&silent_engine, NULL},
     400,
     HANGS,
     .after = 300,
     .before = 306,
     .rank = 0},
    {"a loop without an end on a tenth of a core",
     {&long_op_on_a_tenth, &waiting},
     4000,
     HANGS,
     .after = 2990,
     .before = 3010,
     .rank = 0},
    {"a loop without an end, where a step takes 67.84 s at least",
     {&long_op, &waiting},
     800,
     HANGS,
     .after = 678,
     .before = 684,
     .rank = 0,
     .ideal_step_seconds = 67.84},
    {"a card sleeps for good",
     {&sleeping, &sleeping},
     400,
     HANGS,
     .after = 300,
     .before = 306,
     .rank = 0,
     .device = true},
    {"a card sleeps for good, and steps usually take 20 s",
     {&sleeping, &sleeping},
     600,
     HANGS,
     .after = 500,
     .before = 506,
     .rank = 0,
     .limit = 100,
     .device = true},
    {"transports that spin wait for each other",
     {&polling, &polling},
     1100,
     HANGS,
     .after = 990,
     .before = 1010,
     .rank = 0},
    {"a rank with a card is stopped",
     {&stopped, &sleeping},
     60,
     HANGS,
     .after = 30,
     .before = 36,
     .rank = 0,
     .device = true},
    {"set-up: stopped for good",
     {&stopped, &waiting},
     2000,
     HANGS,
     .after = 1800,
     .before = 1806,
     .rank = 0,
     .limit = 1800},
};

typedef struct teller {
    double cpu_seconds;
    int64_t work, progress;
} teller;

static dt_watchdog_fact tell(teller *t, const behaviour *b, int beat)
{
    char state = b->states[(size_t)beat % strlen(b->states)];

    if (state != 'T' || strlen(b->states) == 1)
        t->cpu_seconds += b->cpu_share * BEAT;
    t->work += b->works_every > 0 && beat % b->works_every == 0 ? 4096 : 0;
    t->progress += b->advances_every > 0 && beat % b->advances_every == 0 ? 1 : 0;
    return (dt_watchdog_fact){state, t->cpu_seconds, t->work, b->silent ? -1 : t->progress,
                              b->waiting};
}

static void run_story(const story *s)
{
    double limit = s->limit > 0 ? s->limit : LIMIT, hung_at = -1;
    int64_t count = s->ranks[1] != NULL ? 2 : 1, rank = -1;
    dt_watchdog_verdict verdict = FINE;
    dt_watchdog_rank ranks[2];
    teller tellers[2] = {{0}};
    dt_watchdog dog;

    dt_watchdog_init(&dog, ranks, count, HANG);
    dog.ideal_step_seconds = s->ideal_step_seconds;
    for (int64_t i = 0; i < count; i++) {
        ranks[i].device = s->device;
        ranks[i].threads = s->threads > 0 ? s->threads : 1;
    }
    for (int beat = 0; beat * BEAT <= s->seconds && hung_at < 0; beat++) {
        for (int64_t i = 0; i < count; i++) {
            dt_watchdog_fact fact = tell(&tellers[i], s->ranks[i], beat);

            dt_watchdog_observe(&dog, i, &fact, beat > 0 ? BEAT : 0);
        }
        if (s->exits_at > 0 && beat == s->exits_at)
            dt_watchdog_exited(&dog, 1);
        verdict = dt_watchdog_decide(&dog, beat * BEAT, limit, &rank);
        if (verdict == HANGS)
            hung_at = beat * BEAT;
    }
    if (verdict != s->verdict)
        fail_msg("%s: the verdict is %d at %.0f s, expected %d", s->name, (int)verdict, hung_at,
                 (int)s->verdict);
    if (verdict != HANGS)
        return;
    if (hung_at < s->after || hung_at > s->before)
        fail_msg("%s: it hangs after %.0f s, expected %.0f to %.0f", s->name, hung_at, s->after,
                 s->before);
    if (rank != s->rank)
        fail_msg("%s: rank %lld hangs, expected %lld", s->name, (long long)rank,
                 (long long)s->rank);
}

static void test_every_story_ends_as_listed(void **state)
{
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
        run_story(&stories[i]);
}

/* --- cases that the table cannot express */

static void beats(dt_watchdog *dog, teller *t, const behaviour *b, int from, int to, double passed)
{
    for (int beat = from; beat < to; beat++) {
        dt_watchdog_fact fact = tell(t, b, beat);

        dt_watchdog_observe(dog, 0, &fact, passed);
    }
}

static void test_nothing_is_decided_about_a_silent_rank(void **state)
{
    dt_watchdog_rank ranks[2];
    teller one = {0};
    dt_watchdog dog;
    int64_t rank;

    dt_watchdog_init(&dog, ranks, 2, HANG);
    beats(&dog, &one, &waiting, 0, 1000, BEAT);
    assert_int_equal(dt_watchdog_decide(&dog, 2000, LIMIT, &rank), SLOW);
    assert_int_equal(ranks[1].condition, DT_WATCHDOG_UNKNOWN);
}

static void test_a_pause_of_everything_is_not_silence(void **state)
{
    dt_watchdog_rank ranks[1];
    teller one = {0};
    dt_watchdog dog;
    int64_t rank;

    dt_watchdog_init(&dog, ranks, 1, HANG);
    beats(&dog, &one, &sleeping, 0, 10, BEAT);
    beats(&dog, &one, &sleeping, 10, 11, 0); /* an hour later, but no time was observed */
    assert_int_equal(dt_watchdog_decide(&dog, 3600, LIMIT, &rank), SLOW);
    assert_float_equal(ranks[0].still_seconds, 18, 1e-9);
}

static void test_a_step_clears_everything(void **state)
{
    dt_watchdog_rank ranks[1];
    teller one = {0};
    dt_watchdog dog;
    int64_t rank;

    dt_watchdog_init(&dog, ranks, 1, HANG);
    beats(&dog, &one, &stopped, 0, 100, BEAT);
    assert_int_equal(dt_watchdog_decide(&dog, 200, LIMIT, &rank), HANGS);
    dt_watchdog_advanced(&dog);
    assert_int_equal(dt_watchdog_decide(&dog, 200, LIMIT, &rank), SLOW);
}

static void test_an_op_as_long_as_one_that_was_seen_is_honest(void **state)
{
    /* One operation takes 200 s. */
    static const behaviour compiles = {"R", 1.0, 100, 0, false, false};
    dt_watchdog_rank ranks[1];
    teller one = {0};
    dt_watchdog dog;
    int64_t rank;

    dt_watchdog_init(&dog, ranks, 1, HANG);
    beats(&dog, &one, &compiles, 0, 102, BEAT);
    assert_true(dog.longest_busy_seconds > 190);
    beats(&dog, &one, &long_op, 102, 102 + 900, BEAT); /* half an hour */
    assert_int_equal(dt_watchdog_decide(&dog, 1800, LIMIT, &rank), SLOW);
    beats(&dog, &one, &long_op, 1002, 1102, BEAT);
    assert_int_equal(dt_watchdog_decide(&dog, 2000, LIMIT, &rank), HANGS);
}

/* An engine that answers late keeps its last report: its counter has not moved. */
static void test_a_missing_answer_is_not_progress(void **state)
{
    dt_watchdog_rank ranks[1];
    dt_watchdog_fact fact = {'S', 1, 0, 41, false}, none = {'S', 1, 0, -1, false};
    dt_watchdog dog;

    dt_watchdog_init(&dog, ranks, 1, HANG);
    dt_watchdog_observe(&dog, 0, &none, 0);
    dt_watchdog_observe(&dog, 0, &fact, BEAT); /* its first report is not progress either */
    assert_int_equal(ranks[0].condition, DT_WATCHDOG_SLEEPS);
    dt_watchdog_observe(&dog, 0, &none, BEAT);
    assert_int_equal(ranks[0].condition, DT_WATCHDOG_SLEEPS);
    dt_watchdog_observe(&dog, 0, &fact, BEAT);
    assert_int_equal(ranks[0].condition, DT_WATCHDOG_SLEEPS);
    dt_watchdog_observe(&dog, 0, &none, BEAT);
    fact.progress++;
    dt_watchdog_observe(&dog, 0, &fact, BEAT);
    assert_int_equal(ranks[0].condition, DT_WATCHDOG_ADVANCES);
}

/* Programs, of which only processor time and output are known. */
static void test_programs_hang_if_none_does_anything(void **state)
{
    static const struct {
        const behaviour *ranks[2];
        dt_watchdog_verdict verdict; /* after ten times hang_seconds */
        int64_t rank;
    } cases[] = {
        {{&sleeping, &sleeping}, HANGS, 0},
        {{&waiting, &blocked}, HANGS, 0},
        {{&computing, &stopped}, HANGS, 1},
        {{&sleeping, &long_op}, FINE, -1},
        {{&sleeping, &long_op_on_a_tenth}, FINE, -1},
        {{&sleeping, &starved}, FINE, -1},
        {{&sleeping, &slow_disk}, FINE, -1},
        {{&sleeping, &slow_network}, FINE, -1}, /* it writes something every 20 s */
        {{&sleeping, &stopped_at_times}, FINE, -1},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        dt_watchdog_rank ranks[2];
        dt_watchdog_verdict verdict = FINE;
        dt_watchdog_fact facts[2] = {{0}};
        int64_t rank = -1;
        dt_watchdog dog;

        dt_watchdog_init(&dog, ranks, 2, HANG);
        for (int beat = 0; beat < (int)(10 * HANG / BEAT) && verdict == FINE; beat++) {
            for (int64_t i = 0; i < 2; i++) {
                const behaviour *b = cases[c].ranks[i];

                facts[i].state = b->states[(size_t)beat % strlen(b->states)];
                if (facts[i].state != 'T')
                    facts[i].cpu_seconds += b->cpu_share * BEAT;
                facts[i].work += b->works_every > 0 && beat % b->works_every == 0;
                facts[i].progress += b->advances_every > 0 && beat % b->advances_every == 0;
                dt_watchdog_observe(&dog, i, &facts[i], BEAT);
            }
            verdict = dt_watchdog_decide_program(&dog, &rank);
            assert_true(verdict == FINE || beat > (int)(HANG / BEAT));
            assert_true(verdict == FINE || beat < (int)(HANG / BEAT) + 4);
        }
        assert_int_equal(verdict, cases[c].verdict);
        if (verdict == HANGS)
            assert_int_equal(rank, cases[c].rank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_hang_if_none_does_anything),
        cmocka_unit_test(test_every_story_ends_as_listed),
        cmocka_unit_test(test_nothing_is_decided_about_a_silent_rank),
        cmocka_unit_test(test_a_pause_of_everything_is_not_silence),
        cmocka_unit_test(test_a_step_clears_everything),
        cmocka_unit_test(test_an_op_as_long_as_one_that_was_seen_is_honest),
        cmocka_unit_test(test_a_missing_answer_is_not_progress),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
