/* What the silence of a node means, by a table of facts; and the clock that measures silence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "runner/channel/poll_clock.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/times.h"

#pragma GCC diagnostic ignored "-Woverride-init" /* a row lists what differs from the usual */

/* Two nodes train; this one was last heard at 100, the other is heard. */
#define TRAINS                                                                                   \
    .heard = 100, .connected = 90, .started = true, .connection = true, .peers = DT_PEERS_HEARD, \
    .command = -1, .answered = -1, .unknown = -1, .peer_step = 99
#define STOPS TRAINS, .stopping = true
#define FIRST                                                                                   \
    .heard = 100, .connected = 100, .connection = true, .peers = DT_PEERS_HEARD, .command = -1, \
    .answered = -1, .unknown = -1, .peer_step = -1

static const struct {
    const char *what;
    dt_liveness_facts facts;
    dt_liveness_act act;
} rows[] = {
    {"just heard", {TRAINS, .now = 101}, DT_LIVENESS_WAIT},
    {"a connection that says nothing", {TRAINS, .now = 106.5}, DT_LIVENESS_RECONNECT},
    {"one that is being made", {TRAINS, .now = 110, .connected = 106.5}, DT_LIVENESS_WAIT},
    {"... for long", {TRAINS, .now = 113, .connected = 106.5}, DT_LIVENESS_RECONNECT},
    {"... again: slow sign-ins get more time",
     {TRAINS, .now = 115, .connected = 106.5, .tries = 1},
     DT_LIVENESS_WAIT},
    {"between two connections", {TRAINS, .now = 110, .connection = false}, DT_LIVENESS_WAIT},

    {"cut off for good", {TRAINS, .now = 116.5, .connection = false}, DT_LIVENESS_LOST},
    {"this machine is never cut off",
     {TRAINS, .now = 130, .here = true, .connection = false},
     DT_LIVENESS_WAIT},
    {"other nodes make steps: it makes them too",
     {TRAINS, .now = 300, .peer_step = 290, .connection = false},
     DT_LIVENESS_WAIT},
    {"... of a minute each, and the next is not due yet",
     {TRAINS, .now = 150, .peer_step = 99, .step_gap = 60, .connection = false},
     DT_LIVENESS_WAIT},
    {"... and the next is late",
     {TRAINS, .now = 176, .peer_step = 99, .step_gap = 60, .connection = false},
     DT_LIVENESS_LOST},
    {"... which ended",
     {TRAINS, .now = 307, .peer_step = 290, .connection = false},
     DT_LIVENESS_LOST},
    {"it answers and lets nobody in",
     {TRAINS, .now = 300, .answered = 295, .connection = false},
     DT_LIVENESS_WAIT},
    {"... and no longer answers",
     {TRAINS, .now = 312, .answered = 295, .connection = false},
     DT_LIVENESS_LOST},
    {"it cannot be asked, by our own fault",
     {TRAINS, .now = 300, .unknown = 295, .connection = false},
     DT_LIVENESS_WAIT},
    {"... nor any other, for hours: this machine cannot even run ssh",
     {TRAINS, .now = 9000, .unknown = 8995, .peers = DT_PEERS_SILENT, .connection = false},
     DT_LIVENESS_WAIT},
    {"... and the others have ended",
     {TRAINS, .now = 9000, .unknown = 8995, .peers = DT_PEERS_ENDED, .connection = false},
     DT_LIVENESS_WAIT},
    {"... which the lease of its ranks ends",
     {TRAINS, .now = 9000, .unknown = 8995, .peers = DT_PEERS_SILENT, .lease = 600,
      .connection = false},
     DT_LIVENESS_LOST},
    {"... where it was to be started: it is waited for",
     {FIRST, .now = 200, .unknown = 195, .connection = false},
     DT_LIVENESS_WAIT},
    {"... but for a stop",
     {FIRST, .now = 200, .unknown = 195, .stopping = true, .connection = false},
     DT_LIVENESS_NO_AGENT},
    {"commands run there: not lost",
     {TRAINS, .now = 118, .command = 110, .connection = false},
     DT_LIVENESS_WAIT},
    {"... and then none",
     {TRAINS, .now = 127, .command = 110, .connection = false},
     DT_LIVENESS_LOST},

    {"nobody is heard: our own network",
     {TRAINS, .now = 300, .peers = DT_PEERS_SILENT, .connection = false},
     DT_LIVENESS_WAIT},
    {"... for an hour",
     {TRAINS, .now = 3701, .peers = DT_PEERS_SILENT, .connection = false},
     DT_LIVENESS_LOST},
    {"... until the ranks have stopped by themselves",
     {TRAINS, .now = 701, .peers = DT_PEERS_SILENT, .lease = 600, .connection = false},
     DT_LIVENESS_LOST},
    {"the others have ended, and well",
     {TRAINS, .now = 117, .peers = DT_PEERS_ENDED, .connection = false},
     DT_LIVENESS_WAIT},
    {"... an hour ago",
     {TRAINS, .now = 3701, .peers = DT_PEERS_ENDED, .connection = false},
     DT_LIVENESS_LOST},
    {"... and this one lets nobody in",
     {TRAINS, .now = 300, .peers = DT_PEERS_ENDED, .answered = 299, .connection = false},
     DT_LIVENESS_WAIT},
    {"... for an hour",
     {TRAINS, .now = 3701, .peers = DT_PEERS_ENDED, .answered = 3700, .connection = false},
     DT_LIVENESS_LOST},

    {"an agent that hangs",
     {TRAINS, .now = 161, .command = 155, .connection = false},
     DT_LIVENESS_REPLACE},
    {"... which could not be reached until now",
     {TRAINS, .now = 161, .command = 155, .reached = 155, .connection = false},
     DT_LIVENESS_WAIT},
    {"... while steps are made",
     {TRAINS, .now = 161, .command = 155, .peer_step = 160, .connection = false},
     DT_LIVENESS_WAIT},
    {"... on this machine", {TRAINS, .now = 161, .here = true}, DT_LIVENESS_REPLACE},
    {"... and the new one says nothing",
     {TRAINS, .now = 117, .command = 116, .replaced = true, .connection = false},
     DT_LIVENESS_NO_AGENT},

    {"stopping: an agent that hangs",
     {STOPS, .now = 121, .command = 115, .connection = false},
     DT_LIVENESS_REPLACE},
    {"stopping: cut off", {STOPS, .now = 117, .connection = false}, DT_LIVENESS_LOST},
    {"stopping: it lets nobody in",
     {STOPS, .now = 117, .answered = 116, .connection = false},
     DT_LIVENESS_LOST},
    {"stopping: nobody is heard",
     {STOPS, .now = 117, .peers = DT_PEERS_SILENT, .connection = false},
     DT_LIVENESS_LOST},

    {"no agent ever answered", {FIRST, .now = 111, .command = 109}, DT_LIVENESS_NO_AGENT},
    {"... in an attempt that follows another",
     {FIRST, .now = 105, .waits = true},
     DT_LIVENESS_WAIT},
    {"... for long", {FIRST, .now = 140, .connected = 135, .waits = true}, DT_LIVENESS_WAIT},
    {"... that is stopped",
     {FIRST, .now = 111, .waits = true, .stopping = true},
     DT_LIVENESS_NO_AGENT},
    {"no agent answered, nor was a command run: a login takes long",
     {FIRST, .now = 124},
     DT_LIVENESS_WAIT},
    {"... and no login takes so long", {FIRST, .now = 125.5}, DT_LIVENESS_NO_AGENT},
    {"... and nothing connects", {FIRST, .now = 111, .connection = false}, DT_LIVENESS_NO_AGENT},
    {"... on this machine, which has no login",
     {FIRST, .now = 111, .here = true},
     DT_LIVENESS_NO_AGENT},
    {"a login that takes long, on a connection of its own",
     {TRAINS, .now = 130, .connected = 106.5, .tries = 1, .answered = 129},
     DT_LIVENESS_WAIT},
    {"... and the run stops",
     {STOPS, .now = 130, .connected = 106.5, .tries = 1, .answered = 129},
     DT_LIVENESS_WAIT},
    {"... and the machine answers no longer",
     {STOPS, .now = 130, .connected = 106.5, .tries = 1},
     DT_LIVENESS_LOST},
    {"... and a command was run there meanwhile, which the agent does not answer",
     {TRAINS, .now = 130, .connected = 106.5, .tries = 1, .answered = 129, .command = 128},
     DT_LIVENESS_RECONNECT},
};

static void test_facts_determine_actions(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_liveness_act act = dt_liveness_judge(&rows[i].facts).act;

        if (act != rows[i].act)
            fail_msg("%s: act %d, expected %d", rows[i].what, act, rows[i].act);
    }
}

static void test_doubtful_nodes_are_probed_and_reported(void **state)
{
    dt_liveness_facts facts = {TRAINS, .now = 107};

    assert_false(dt_liveness_judge(&facts).probe);
    facts.now = 109;
    assert_true(dt_liveness_judge(&facts).probe);
    assert_true(dt_liveness_judge(&facts).unreachable);
    facts.probed = 108;
    assert_false(dt_liveness_judge(&facts).probe);
    facts.here = true;
    facts.probed = 0;
    assert_false(dt_liveness_judge(&facts).probe);
}

static void test_a_hung_probe_proves_nothing_about_earlier_times(void **state)
{
    assert_true(isinf(dt_liveness_reached(0, 50, 99, 100, false)));
    assert_float_equal(dt_liveness_reached(INFINITY, 99, 99.5, 100, true), 100, 1e-9);
    assert_float_equal(dt_liveness_reached(0, 91, 99.5, 100, true), 0,
                       1e-9); /* the first probe, prompt */
    /* A probe that hung during a cut. */
    assert_float_equal(dt_liveness_reached(0, 86, 94, 100, true), 98, 1e-9);
    assert_float_equal(dt_liveness_reached(0, 86, 99.5, 100, true), 99.5,
                       1e-9); /* a later probe overtook it */
    assert_float_equal(dt_liveness_reached(99.5, 100, 94, 103, true), 99.5, 1e-9);
    assert_float_equal(dt_liveness_reached(20, 97, 94, 100, true), 20, 1e-9); /* a slow machine */
}

static void test_a_pause_is_not_silence(void **state)
{
    dt_poll_clock clock = {.seconds = 100, .monotonic_seconds = 100};
    double now = 100;

    for (int i = 0; i < 10; i++)
        dt_poll_clock_turn(&clock, now += 0.5);
    assert_float_equal(clock.seconds, 105, 1e-9);
    dt_poll_clock_turn(&clock, now += 3600); /* whatever caused the pause */
    assert_float_equal(clock.seconds, 105 + dt_times()->clock_turn_seconds, 1e-9);
    dt_poll_clock_turn(&clock, now); /* the clock does not go back either */
    dt_poll_clock_turn(&clock, now - 5);
    assert_float_equal(clock.seconds, 105 + dt_times()->clock_turn_seconds, 1e-9);
}

/* After a pause, a due timer sees the time before the pause; the clock moves only after the
 * waiting input was read. */
typedef struct turn {
    dt_poll_clock clock;
    uv_timer_t timer;
    double before, seen;
} turn;

static void on_timer(uv_timer_t *timer)
{
    turn *one = timer->data;

    one->seen = one->clock.seconds;
    uv_close((uv_handle_t *)timer, NULL);
    dt_poll_clock_close(&one->clock);
}

static void test_timers_after_a_pause_see_the_time_before_it(void **state)
{
    uv_loop_t loop;
    turn one;

    uv_loop_init(&loop);
    dt_poll_clock_open(&one.clock, &loop);
    one.clock.monotonic_seconds -= 1000; /* as if it had been stopped since then */
    one.before = one.clock.seconds;
    uv_timer_init(&loop, &one.timer);
    one.timer.data = &one;
    uv_timer_start(&one.timer, on_timer, 0, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(one.seen - one.before <= dt_times()->clock_turn_seconds);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_determine_actions),
        cmocka_unit_test(test_doubtful_nodes_are_probed_and_reported),
        cmocka_unit_test(test_a_hung_probe_proves_nothing_about_earlier_times),
        cmocka_unit_test(test_a_pause_is_not_silence),
        cmocka_unit_test(test_timers_after_a_pause_see_the_time_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
