/* Each row describes four ranks by what a step of each takes, and by what their node shows from outside; and the
 * finding that must follow: who, where and why. Readings are 2 s apart, so nothing depends on a clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/slow.h"

enum { RANKS = 4, UNITS = 5 };

#define BEAT 2.0

static const char *const nodes[RANKS] = {"a", "a", "b", "c"};

static const char *node_of(const void *context, int64_t rank)
{
    return nodes[rank];
}

/* One rank: seconds of a step beyond those of `base`, and shares of the time. */
typedef struct story {
    double input, forward, backward, update, save, loop, blocked;
    int unit;                           /* has all of `backward`; 0: spread evenly */
    double run, delay, limited, stolen; /* run, delay 0: 0.9 and 0.02 */
    double mhz;                         /* of 3400; 0: unknown */
    double others;                      /* share of its processor that other processes use */
    double asleep;                      /* of a program */
    bool blind;                         /* nothing is known from outside */
} story;

/* The own time of a healthy rank is 0.35 s, and a transfer takes 0.05 s. */
static const story base = {
    .input = 0.01, .forward = 0.1, .backward = 0.2, .update = 0.03, .loop = 0.01};
static const story usual = {.blocked = 0.05};
static const story waits = {.blocked = 0.35, .run = 0.5};

/* --- a run of readings */

static void grow(dt_slow_reading *at, const story *of, int64_t steps)
{
    double n = (double)steps, extra = of->unit > 0 ? of->backward : 0;
    double run = of->run > 0 ? of->run : 0.9, delay = of->delay > 0 ? of->delay : 0.02;
    double backward = base.backward + of->backward;

    at->at_seconds += BEAT;
    at->steps += steps;
    at->own[DT_SLOW_INPUT] += n * (base.input + of->input);
    at->own[DT_SLOW_FORWARD] += n * (base.forward + of->forward);
    at->own[DT_SLOW_BACKWARD] += n * backward;
    at->own[DT_SLOW_UPDATE] += n * (base.update + of->update);
    at->own[DT_SLOW_SAVE] += n * of->save;
    at->own[DT_SLOW_LOOP] += n * (base.loop + of->loop);
    at->blocked += n * of->blocked;
    at->products += n * (base.forward + of->forward + backward);
    at->arithmetic += n * (base.update + of->update);
    at->host += n * (base.loop + of->loop);
    at->units = UNITS;
    for (int i = 0; i < UNITS; i++)
        at->unit[i] += n * ((backward - extra) / UNITS + (i == of->unit ? extra : 0));
    at->run = at->delay = at->limited = at->busy = at->stolen = at->mhz = -1;
    if (of->blind)
        return;
    at->processor_count = 1;
    snprintf(at->processors, sizeof(at->processors), "3");
    at->run = at->first_run = run * at->at_seconds;
    at->delay = at->first_delay = delay * at->at_seconds;
    at->limited = of->limited * at->at_seconds;
    at->stolen = of->stolen * at->at_seconds;
    at->busy = (run + of->others) * at->at_seconds;
    at->mhz = of->mhz > 0 ? of->mhz : -1;
    at->mhz_most = 3400;
    at->samples += 8;
    at->samples_asleep += 8 * of->asleep;
    snprintf(at->asleep_in, sizeof(at->asleep_in), "futex_do_wait");
}

/* Feeds `beats` readings of each rank; returns the number of judgements. */
static int64_t feed(dt_slow *slow, dt_slow_reading *readings, const story *of, int beats)
{
    for (int beat = 0; beat < beats; beat++)
        for (int64_t rank = 0; rank < slow->rank_count; rank++) {
            grow(&readings[rank], &of[rank], slow->is_command ? 0 : 4);
            dt_slow_add(slow, rank, &readings[rank]);
        }
    return slow->judgements;
}

/* --- the table */

typedef struct row {
    const char *name;
    story rank[RANKS];
    int64_t who; /* -2: nothing is found */
    int place;
    dt_slow_cause cause;
    const char *text, *evidence; /* in the finding */
} row;

#define NONE   -2, -1, DT_SLOW_BY_UNKNOWN, NULL, NULL
#define OTHERS waits, waits, waits
#define LATE(...)                    \
    {                                \
        .blocked = 0.05, __VA_ARGS__ \
    }

static const row rows[] = {
    {"all alike",
     {{.blocked = 0.05}, {.blocked = 0.05}, {.blocked = 0.06}, {.blocked = 0.05}},
     NONE},
    {"a delay below a tenth of a step", {usual, usual, usual, LATE(.backward = 0.02)}, NONE},
    {"slow forward",
     {OTHERS, LATE(.forward = 0.3)},
     3,
     DT_SLOW_FORWARD,
     DT_SLOW_BY_COMPUTING,
     "rank 3 on c arrives last: the others wait 300 ms",
     "no counter tells why"},
    {"slow backward, in one block",
     {OTHERS, LATE(.backward = 0.3, .unit = 2)},
     3,
     DT_SLOW_BACKWARD,
     DT_SLOW_BY_COMPUTING,
     "in the backward pass, in block 2 of 4",
     NULL},
    {"slow backward, everywhere",
     {OTHERS, LATE(.backward = 0.3)},
     3,
     DT_SLOW_BACKWARD,
     DT_SLOW_BY_COMPUTING,
     "in the backward pass; ",
     NULL},
    {"slow update",
     {OTHERS, LATE(.update = 0.3)},
     3,
     DT_SLOW_UPDATE,
     DT_SLOW_BY_COMPUTING,
     "in the update",
     NULL},
    {"slow input",
     {OTHERS, LATE(.input = 0.3, .run = 0.4)},
     3,
     DT_SLOW_INPUT,
     DT_SLOW_BY_INPUT,
     "its input is slow",
     "input takes 310 ms of its step, 10 ms on the other ranks"},
    {"slow saves of one rank",
     {OTHERS, LATE(.save = 0.3)},
     3,
     DT_SLOW_SAVE,
     DT_SLOW_BY_SAVING,
     "its disk or snapshot is slow",
     NULL},
    {"between the steps",
     {OTHERS, LATE(.loop = 0.3, .run = 0.4)},
     3,
     DT_SLOW_LOOP,
     DT_SLOW_BY_SLEEP,
     "it sleeps outside of collectives",
     NULL},
    {"everything, on a shared processor",
     {OTHERS, LATE(.forward = 0.1, .backward = 0.2, .run = 0.45, .delay = 0.5, .others = 0.5)},
     3,
     -1,
     DT_SLOW_BY_SHARING,
     "in all that it computes; it lacks a processor",
     "for 50 % of the time (the other ranks 2 %); it may use only processor 3, of which it uses "
     "45 % and other processes 50 %"},
    {"all ranks share processors, one more so",
     {{.blocked = 0.35, .run = 0.4, .delay = 0.3, .others = 0.5},
      {.blocked = 0.35, .run = 0.4, .delay = 0.3, .others = 0.5},
      {.blocked = 0.35, .run = 0.4, .delay = 0.3, .others = 0.5},
      LATE(.forward = 0.1, .backward = 0.2, .run = 0.3, .delay = 0.7, .others = 0.7)},
     3,
     -1,
     DT_SLOW_BY_SHARING,
     "lacks a processor",
     "(the other ranks 30 %)"},
    {"processor limit of its control group",
     {OTHERS, LATE(.forward = 0.1, .backward = 0.2, .run = 0.5, .limited = 0.5)},
     3,
     -1,
     DT_SLOW_BY_LIMIT,
     "the processor limit of its control group stops it",
     "cpu.stat"},
    {"stolen by the host",
     {OTHERS, LATE(.forward = 0.1, .backward = 0.2, .run = 0.5, .delay = 0.5, .stolen = 0.5)},
     3,
     -1,
     DT_SLOW_BY_STEAL,
     "takes processor time from it",
     "50 % of the time of processor 3"},
    {"throttled processor",
     {{.blocked = 0.35, .run = 0.5, .mhz = 3300},
      {.blocked = 0.35, .run = 0.5, .mhz = 3300},
      {.blocked = 0.35, .run = 0.5, .mhz = 3200},
      LATE(.forward = 0.1, .backward = 0.2, .mhz = 2100)},
     3,
     -1,
     DT_SLOW_BY_FREQUENCY,
     "its processor is throttled (2.1 of 3.4 GHz)",
     "cpufreq"},
    {"all processors are slow alike: not the cause of one",
     {{.blocked = 0.35, .run = 0.5, .mhz = 2100},
      {.blocked = 0.35, .run = 0.5, .mhz = 2100},
      {.blocked = 0.35, .run = 0.5, .mhz = 2100},
      LATE(.forward = 0.3, .mhz = 2100)},
     3,
     DT_SLOW_FORWARD,
     DT_SLOW_BY_COMPUTING,
     "the cause is not known",
     NULL},
    {"nothing is known from outside",
     {{.blocked = 0.35, .blind = true},
      {.blocked = 0.35, .blind = true},
      {.blocked = 0.35, .blind = true},
      LATE(.forward = 0.3, .blind = true)},
     3,
     DT_SLOW_FORWARD,
     DT_SLOW_BY_COMPUTING,
     "the cause is not known",
     "its processor time is not readable here"},
    {"the first rank",
     {LATE(.backward = 0.3), waits, waits, waits},
     0,
     DT_SLOW_BACKWARD,
     DT_SLOW_BY_COMPUTING,
     "rank 0 on a arrives last",
     NULL},
    {"input of all ranks",
     {{.input = 0.4, .run = 0.5},
      {.input = 0.4, .run = 0.5},
      {.input = 0.4, .run = 0.5},
      {.input = 0.4, .run = 0.5}},
     -1,
     -1,
     DT_SLOW_BY_INPUT,
     "reading input takes",
     "stopwatch of the ranks"},
    {"messages",
     {{.blocked = 0.4, .run = 0.5},
      {.blocked = 0.41, .run = 0.5},
      {.blocked = 0.4, .run = 0.5},
      {.blocked = 0.42, .run = 0.5}},
     -1,
     -1,
     DT_SLOW_BY_NETWORK,
     "messages take 400 ms",
     "also the one that arrives last"},
    {"messages, of a rank without a processor",
     {{.blocked = 0.4, .run = 0.5},
      {.blocked = 0.41, .run = 0.5},
      {.blocked = 0.4, .run = 0.3, .delay = 0.6, .others = 0.7},
      {.blocked = 0.42, .run = 0.5}},
     2,
     -1,
     DT_SLOW_BY_SHARING,
     "rank 2 on b delays them; it lacks a processor",
     NULL},
};

static void init(dt_slow *slow, dt_slow_rank *ranks, dt_slow_reading *readings, bool command)
{
    memset(readings, 0, RANKS * sizeof(*readings));
    dt_slow_init(slow, ranks, RANKS, command, 0.9 * BEAT, node_of, NULL);
}

static void check_row(const row *of, const dt_slow *slow)
{
    const dt_slow_finding *found = &slow->findings[0];

    if ((of->who == -2) != (slow->finding_count == 0))
        fail_msg("%s: %d findings: %s", of->name, slow->finding_count, found->text);
    if (of->who == -2)
        return;
    if (found->rank != of->who || found->place != of->place || found->cause != of->cause)
        fail_msg("%s: rank %d, place %d, cause %s: %s", of->name, (int)found->rank, found->place,
                 dt_slow_cause_names[found->cause], found->text);
    if (strstr(found->text, of->text) == NULL)
        fail_msg("%s: says '%s', not '%s'", of->name, found->text, of->text);
    if (of->evidence != NULL && strstr(found->evidence, of->evidence) == NULL)
        fail_msg("%s: evidence '%s', not '%s'", of->name, found->evidence, of->evidence);
    assert_true(found->evidence[0] !=
                '\0'); /* each sentence has evidence, or says that it has none */
}

static void test_every_story_has_its_cause(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_slow_reading readings[RANKS];
        dt_slow_rank ranks[RANKS];
        dt_slow slow;

        init(&slow, ranks, readings, false);
        feed(&slow, readings, rows[i].rank, 5);
        check_row(&rows[i], &slow);
    }
}

/* Four steps a beat: the rank is named before step 20, and no longer once it is as fast as the others. */
static void test_found_within_20_steps_and_forgotten_again(void **state)
{
    const story slow_rank[RANKS] = {waits, waits, waits, LATE(.backward = 0.3)};
    const story well[RANKS] = {usual, usual, usual, usual};
    dt_slow_reading readings[RANKS];
    dt_slow_rank ranks[RANKS];
    dt_slow slow;
    int64_t before;

    init(&slow, ranks, readings, false);
    feed(&slow, readings, well, 10);
    assert_int_equal(slow.finding_count, 0);
    before = readings[0].steps;
    while (slow.finding_count == 0 && readings[0].steps < before + 100)
        feed(&slow, readings, slow_rank, 1);
    assert_true(readings[0].steps - before <= 20);
    assert_int_equal(slow.findings[0].rank, 3);
    feed(&slow, readings, well, 1);
    assert_int_equal(slow.finding_count, 0);
}

/* One slow moment is not a finding; another rank at each moment is none either. */
static void test_noise_is_no_finding(void **state)
{
    dt_slow_reading readings[RANKS];
    dt_slow_rank ranks[RANKS];
    dt_slow slow;

    init(&slow, ranks, readings, false);
    for (int beat = 0; beat < 20; beat++) {
        story now[RANKS] = {waits, waits, waits, waits};

        now[beat % RANKS] = (story)LATE(.backward = 0.3);
        feed(&slow, readings, now, 1);
        assert_int_equal(slow.finding_count, 0);
    }
}

/* The parts are the whole step, whoever waits. */
static void test_parts_sum_to_the_step(void **state)
{
    const story of[RANKS] = {waits, usual, waits, LATE(.backward = 0.3, .save = 0.1)};
    dt_slow_reading readings[RANKS];
    dt_slow_rank ranks[RANKS];
    double sum = 0;
    dt_slow slow;

    init(&slow, ranks, readings, false);
    feed(&slow, readings, of, 4);
    for (int i = 0; i < DT_SLOW_PARTS; i++)
        sum += slow.parts[i];
    assert_true(fabs(sum - slow.step_seconds) < 1e-9);
    assert_true(fabs(slow.parts[DT_SLOW_MESSAGES] - 0.05) < 1e-9);
    assert_true(fabs(slow.parts[DT_SLOW_WAITING] - 0.15) < 1e-9); /* 0.3 s of two ranks of four */
}

/* A rank that starts again, or a node that was paused, has no window that spans it. */
static void test_counters_that_go_back_are_no_window(void **state)
{
    const story of[RANKS] = {usual, usual, usual, usual};
    dt_slow_reading readings[RANKS];
    dt_slow_rank ranks[RANKS];
    int64_t judgements;
    dt_slow slow;

    init(&slow, ranks, readings, false);
    judgements = feed(&slow, readings, of, 3);
    assert_true(judgements >= 1);
    memset(&readings[2], 0, sizeof(readings[2]));
    assert_int_equal(feed(&slow, readings, of, 1), judgements);
    assert_int_equal(feed(&slow, readings, of, 1), judgements + 1);
}

static void test_the_slow_link_is_named(void **state)
{
    static const char *const addresses[RANKS] = {"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"};
    const story of[RANKS] = {{.blocked = 0.4, .run = 0.5},
                             {.blocked = 0.4, .run = 0.5},
                             {.blocked = 0.4, .run = 0.2, .delay = 0.7},
                             {.blocked = 0.4, .run = 0.5}};
    dt_slow_reading readings[RANKS];
    dt_slow_rank ranks[RANKS];
    dt_slow slow;

    init(&slow, ranks, readings, false);
    for (int i = 0; i < RANKS; i++)
        for (int j = 0; j < RANKS; j++) {
            dt_slow_peer *peer = &readings[i].peers[readings[i].peer_count];

            if (strcmp(addresses[i], addresses[j]) == 0)
                continue;
            snprintf(peer->local, sizeof(peer->local), "%s", addresses[i]);
            snprintf(peer->remote, sizeof(peer->remote), "%s", addresses[j]);
            peer->round_trip_seconds = i + j == 5 ? 0.08 : 0.0004; /* b and c */
            readings[i].peer_count++;
        }
    feed(&slow, readings, of, 4);
    for (int i = 0; i < slow.finding_count; i++)
        if (slow.findings[i].cause == DT_SLOW_BY_NETWORK) {
            assert_non_null(strstr(slow.findings[i].text, "the network between b and c is slow"));
            assert_non_null(
                strstr(slow.findings[i].evidence, "takes 80 ms, 0.4 ms between other nodes (TCP)"));
            return;
        }
    fail_msg("no finding about the network: %s", slow.findings[0].text);
}

/* Programs: only what is seen from outside. */
static void test_programs(void **state)
{
    const story sleeps = {.loop = 1, .run = 0.35, .delay = 0.01, .asleep = 0.6};
    const story starved = {.loop = 1, .run = 0.5, .delay = 0.49, .others = 0.5};
    const story busy = {.loop = 1, .run = 0.98, .delay = 0.01};
    const story cases[][RANKS] = {{sleeps, sleeps, sleeps, starved},
                                  {sleeps, busy, sleeps, sleeps},
                                  {sleeps, sleeps, sleeps, sleeps},
                                  {busy, busy, busy, busy}};
    static const int64_t who[] = {3, 1, -2, -2};
    static const dt_slow_cause causes[] = {DT_SLOW_BY_SHARING, DT_SLOW_BY_COMPUTING};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_slow_reading readings[RANKS];
        dt_slow_rank ranks[RANKS];
        dt_slow slow;

        init(&slow, ranks, readings, true);
        feed(&slow, readings, cases[i], 5);
        assert_int_equal(slow.finding_count, who[i] == -2 ? 0 : 1);
        if (who[i] == -2)
            continue;
        assert_int_equal(slow.findings[0].rank, who[i]);
        assert_int_equal(slow.findings[0].cause, causes[i]);
        assert_non_null(strstr(slow.findings[0].evidence, "slept in the kernel's futex_do_wait"));
    }
}

static void test_json_of_readings_and_judgements(void **state)
{
    static const char text[] =
        "{\"rank\":0,\"times\":{\"steps\":7,\"seconds\":{\"forward\":[0,1,2,3,4],"
        "\"input\":[0.5,0,0,0,0.25],\"evaluate\":[9,9,9,9,9]},\"backward_own\":[1,2],"
        "\"sent_bytes\":8,\"peers\":[{\"local\":\"a\",\"remote\":\"b\",\"round_trip_seconds\":3}]},"
        "\"load\":{\"run_seconds\":5,\"processors\":\"0-1\",\"mhz\":2100},"
        "\"samples\":{\"runs\":3,\"S futex\":2,\"S poll\":1,\"D \":1}}";
    json_t *facts = json_loads(text, 0, NULL), *why;
    dt_slow_reading reading, readings[RANKS];
    dt_slow_rank ranks[RANKS];
    const story of[RANKS] = {waits, waits, waits, LATE(.forward = 0.3)};
    dt_slow slow;

    assert_true(dt_slow_reading_parse(&reading, facts, 12));
    json_decref(facts);
    assert_int_equal(reading.steps, 7);
    assert_true(reading.own[DT_SLOW_FORWARD] == 6 && reading.own[DT_SLOW_INPUT] == 0.5);
    assert_true(reading.blocked == 4.25 && reading.arithmetic == 1 && reading.attention == 3);
    assert_true(reading.run == 5 && reading.delay == -1 && reading.mhz == 2100);
    assert_int_equal(reading.units, 2);
    assert_int_equal(reading.peer_count, 1);
    assert_true(reading.samples == 7 && reading.samples_asleep == 3);
    assert_string_equal(reading.asleep_in, "futex");
    facts = json_loads("{\"rank\":0,\"state\":\"R\"}", 0, NULL);
    assert_false(dt_slow_reading_parse(&reading, facts, 12)); /* an older agent */
    json_decref(facts);

    init(&slow, ranks, readings, false);
    feed(&slow, readings, of, 4);
    why = dt_slow_to_json(&slow);
    assert_int_equal(json_array_size(json_object_get(why, "parts")), DT_SLOW_PARTS);
    assert_int_equal(json_array_size(json_object_get(why, "ranks")), RANKS);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(why, "findings"), 0), "cause")),
                        "computing");
    json_decref(why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_story_has_its_cause),
        cmocka_unit_test(test_found_within_20_steps_and_forgotten_again),
        cmocka_unit_test(test_noise_is_no_finding),
        cmocka_unit_test(test_parts_sum_to_the_step),
        cmocka_unit_test(test_counters_that_go_back_are_no_window),
        cmocka_unit_test(test_the_slow_link_is_named),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_json_of_readings_and_judgements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
