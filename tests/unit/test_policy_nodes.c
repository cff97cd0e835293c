/* What follows if a node is unavailable: refusals, losses, and the time for ranks to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/policy/restart.h"

#pragma GCC diagnostic ignored "-Woverride-init" /* a row lists what differs from the usual */

/* --- refusals */

static int refuse_until_last(dt_refusals *refusals, int64_t next_event, bool lasting)
{
    int times = 1;

    while (!dt_refusal_is_last(refusals, next_event, lasting))
        times++;
    return times;
}

static void test_refusals_in_a_row_have_an_end(void **state)
{
    dt_refusals lasting = {0}, passing = {0};

    assert_int_equal(refuse_until_last(&lasting, 7, true), 5);
    assert_int_equal(refuse_until_last(&passing, 7, false), 60);
}

static void test_an_event_in_between_begins_a_new_count(void **state)
{
    dt_refusals refusals = {0};

    for (int64_t event = 1; event < 100; event++)
        for (int i = 0; i < 4; i++)
            assert_false(dt_refusal_is_last(&refusals, event, true));
    assert_true(dt_refusal_is_last(&refusals, 99, true));
}

/* --- a node that cannot be prepared */

/* A restart on three nodes, all needed; one has been unreachable for a minute. */
#define AWAY \
    .failed = DT_ERR_PEER, .preparing = true, .restarts = 1, .nodes = 3, .waited_seconds = 60

static void test_a_node_that_may_be_rebooting_is_waited_for(void **state)
{
    static const struct {
        const char *what;
        dt_preparation_facts facts;
        bool waits;
    } rows[] = {
        {"away after a restart", {AWAY}, true},
        {"a home that stalls", {AWAY, .failed = DT_ERR_TIMEOUT}, true},
        {"this machine cannot start ssh", {AWAY, .failed = DT_ERR_IO}, true},
        {"for an hour", {AWAY, .waited_seconds = 3600}, true},
        {"and no longer", {AWAY, .waited_seconds = 3601}, false},
        {"a person started it", {AWAY, .restarts = 0}, false},
        {"a login that is broken for a moment", {AWAY, .failed = DT_ERR_UNSUPPORTED}, true},
        {"... in the first attempt", {AWAY, .failed = DT_ERR_UNSUPPORTED, .restarts = 0}, false},
        {"a job that is over", {AWAY, .failed = DT_ERR_UNSUPPORTED, .in_job = true}, false},
        {"an answer that cannot be parsed", {AWAY, .failed = DT_ERR_CORRUPT}, true},
        {"the plan is wrong", {AWAY, .failed = DT_ERR_RECIPE}, false},
        {"the run may continue without it", {AWAY, .nodes_min = 2}, false},
        {"the run has just enough nodes", {AWAY, .nodes_min = 3}, true},
        {"the attempt is being ended", {AWAY, .preparing = false}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (dt_node_loss_waits(&rows[i].facts) != rows[i].waits)
            fail_msg("%s", rows[i].what);
    assert_true(dt_node_loss_is_final(DT_ERR_UNSUPPORTED));
    assert_false(dt_node_loss_is_final(DT_ERR_PEER));
}

static void test_ranks_may_live_on_a_silent_node(void **state)
{
    static const struct {
        dt_node_loss_facts facts;
        bool leaves;
    } rows[] = {
        {{.started = true}, true},
        {{.started = false}, false},
        {{.started = true, .preempted = true}, false},
        {{.started = true, .rebooted = true}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(dt_node_loss_leaves_ranks(&rows[i].facts), rows[i].leaves);
}

/* --- the grace period of ranks */

static void test_only_ranks_that_can_save_get_a_grace_period(void **state)
{
    static const struct {
        const char *what;
        dt_ending_facts facts;
        double grace;
    } rows[] = {
        {"a stop", {.stop_asked = true, .grace_seconds = 45}, 45},
        {"a stop at once", {.stop_asked = true, .stop_now = true, .grace_seconds = 45}, 0},
        {"another rank failed", {.failed = true, .grace_seconds = 45}, 10},
        {"... and then a stop", {.stop_asked = true, .failed = true, .grace_seconds = 45}, 10},
        {"a hang", {.failed = true, .hung = true, .grace_seconds = 45}, 0},
        {"a node was lost", {.grace_seconds = 45}, 10},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (dt_ending_grace(&rows[i].facts) != rows[i].grace)
            fail_msg("%s: %g s", rows[i].what, dt_ending_grace(&rows[i].facts));
}

static void test_ranks_of_a_lost_launcher_end_by_themselves(void **state)
{
    assert_true(dt_ending_lease(0, 45) == 0);
    assert_true(dt_ending_lease(600, 45) == 675);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_in_a_row_have_an_end),
        cmocka_unit_test(test_an_event_in_between_begins_a_new_count),
        cmocka_unit_test(test_a_node_that_may_be_rebooting_is_waited_for),
        cmocka_unit_test(test_ranks_may_live_on_a_silent_node),
        cmocka_unit_test(test_only_ranks_that_can_save_get_a_grace_period),
        cmocka_unit_test(test_ranks_of_a_lost_launcher_end_by_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
