/* Whether a run is complete, and whether another attempt follows, by tables of facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/restart.h"

#pragma GCC diagnostic ignored "-Woverride-init" /* a row lists what differs from the usual */

/* Four nodes, all needed; one rank died in the first attempt, at 100 of 1000 steps. */
#define FAILED                                                                               \
    .may_restart = true, .started = true, .planned = true, .max_restarts = 3, .restarts = 0, \
    .nodes = 4, .done = {.saved_step = 100, .steps = 1000}

static const struct {
    const char *what;
    dt_restart_facts facts;
    dt_restart_decision wanted;
} rows[] = {
    {"a rank died", {FAILED}, {DT_RESTART_AGAIN, 1, 0}},
    {"before the first checkpoint", {FAILED, .done = {.steps = 1000}}, {DT_RESTART_AGAIN, 1, 0}},
    {"no failure, or one that comes again",
     {FAILED, .may_restart = false},
     {.act = DT_RESTART_END}},
    {"nothing was ever started", {FAILED, .started = false}, {.act = DT_RESTART_END}},
    {"its plan is lost", {FAILED, .planned = false}, {.act = DT_RESTART_END}},
    {"the recipe wants none", {FAILED, .max_restarts = 0}, {.act = DT_RESTART_END}},

    {"the third in a row without a checkpoint",
     {FAILED, .restarts = 2, .start_step = 100},
     {DT_RESTART_AGAIN, 3, 0}},
    {"one too many", {FAILED, .restarts = 3, .start_step = 100}, {.act = DT_RESTART_SPENT}},
    {"a new checkpoint begins a new count",
     {FAILED, .restarts = 3, .start_step = 99},
     {DT_RESTART_AGAIN, 1, 0}},

    {"all was done and saved before it failed",
     {FAILED, .done = {.saved_step = 1000, .steps = 1000}},
     {.act = DT_RESTART_DONE}},
    {"... whatever the budget",
     {FAILED, .max_restarts = 0, .done = {.saved_step = 1000, .steps = 1000}},
     {.act = DT_RESTART_DONE}},
    {"... but not where it may not be tried again",
     {FAILED, .may_restart = false, .done = {.saved_step = 1000, .steps = 1000}},
     {.act = DT_RESTART_END}},
    {"by epochs, and nobody said how many steps they are",
     {FAILED, .done = {.saved_step = 610, .epochs = 3}},
     {DT_RESTART_AGAIN, 1, 0}},

    {"a lost node is waited for where all are needed",
     {FAILED, .nodes_lost = 1},
     {DT_RESTART_AGAIN, 1, 0}},
    {"... and left out where enough stay",
     {FAILED, .nodes_lost = 2, .nodes_min = 2},
     {DT_RESTART_AGAIN, 1, 2}},
    {"... and waited for where too few would",
     {FAILED, .nodes_lost = 3, .nodes_min = 2},
     {DT_RESTART_AGAIN, 1, 0}},
};

static void test_facts_determine_the_next_attempt(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_restart_decision got = dt_restart_decide(&rows[i].facts);

        if (got.act != rows[i].wanted.act || got.restarts != rows[i].wanted.restarts ||
            got.nodes_left_out != rows[i].wanted.nodes_left_out)
            fail_msg("%s: act %d, restarts %lld, nodes left out %lld", rows[i].what, (int)got.act,
                     (long long)got.restarts, (long long)got.nodes_left_out);
    }
}

static void test_the_pause_before_growing_doubles(void **state)
{
    static const double pauses[] = {30, 60, 120, 240, 480, 960, 1920, 3600, 3600};

    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
        assert_true(dt_grow_pause((int64_t)i, 30, 3600) == pauses[i]);
    assert_true(dt_grow_pause(INT64_MAX, 30, 3600) == 3600);
}

/* Checkpoints are read only where they matter. */
static void test_impossible_restarts_end_the_run(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!dt_restart_is_possible(&rows[i].facts))
            assert_int_equal(dt_restart_decide(&rows[i].facts).act, DT_RESTART_END);
}

static void test_only_what_is_known_completes_a_run(void **state)
{
    static const struct {
        dt_completion facts;
        bool reached;
        int64_t total;
    } cases[] = {
        /* by steps */
        {{.steps = 100}, false, 100},
        {{.saved_step = 99, .steps = 100}, false, 100},
        {{.saved_step = 100, .steps = 100}, true, 100},
        {{.saved_step = 150, .steps = 100}, true, 100}, /* the recipe was changed to fewer steps */
        /* by epochs: 0 steps in the recipe means that none are set */
        {{.epochs = 3}, false, 0},
        {{.saved_step = 48, .epochs = 40}, false, 0},
        {{.saved_step = 48, .told_total = 610, .epochs = 40}, false, 610},
        {{.saved_step = 610, .told_total = 610, .epochs = 40}, true, 610},
        {{.saved_step = 610, .saved_total = 610, .epochs = 40}, true, 610},
        {{.saved_step = 48, .saved_total = 610, .epochs = 40}, false, 610},
        /* fp16 skipped steps after the engine had reported the total */
        {{.saved_step = 608, .saved_total = 608, .told_total = 610, .epochs = 40}, true, 608},
        /* more epochs than before: the checkpoint's total is not used */
        {{.saved_step = 610, .told_total = 1220, .epochs = 80}, false, 1220},
        {{.saved_step = 610, .epochs = 80}, false, 0},
        /* both: the first to be reached counts */
        {{.saved_step = 100, .steps = 100, .epochs = 40}, true, 0},
        {{.saved_step = 100, .told_total = 610, .steps = 100, .epochs = 40}, true, 610},
        {{.saved_step = 99, .told_total = 100, .steps = 100, .epochs = 40}, false, 100},
        {{.saved_step = 50, .told_total = 50, .steps = 100, .epochs = 1}, true, 50},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (dt_completion_reached(&cases[i].facts) != cases[i].reached ||
            dt_completion_total(&cases[i].facts) != cases[i].total)
            fail_msg("case %zu", i);
    }
}

static void test_the_same_error_at_once_ends_a_run(void **state)
{
    dt_restart_facts facts = {.may_restart = true,
                              .started = true,
                              .planned = true,
                              .done = {.epochs = 1},
                              .max_restarts = 3,
                              .restarts = 1,
                              .nodes = 2,
                              .same_error = true};

    assert_int_equal(dt_restart_decide(&facts).act, DT_RESTART_SAME);
    facts.nodes_lost = 1;
    assert_int_equal(dt_restart_decide(&facts).act, DT_RESTART_AGAIN);
    facts.nodes_lost = 0;
    facts.done.saved_step = 4; /* a new checkpoint */
    assert_int_equal(dt_restart_decide(&facts).act, DT_RESTART_AGAIN);
    facts.done.saved_step = 0;
    facts.restarts = 3;
    assert_int_equal(dt_restart_decide(&facts).act, DT_RESTART_SPENT);
}

static void test_reasons_are_compared_without_their_numbers(void **state)
{
    assert_true(
        dt_restart_same_reason("rank 1: port 29500 is in use", "rank 12: port 8 is in use"));
    assert_true(dt_restart_same_reason("no such file", "no such file"));
    assert_false(dt_restart_same_reason("no such file", "no such file 1"));
    assert_false(dt_restart_same_reason("no such file 1", "no such file"));
    assert_false(dt_restart_same_reason("no such file", "no such folder"));
    assert_false(dt_restart_same_reason("", ""));
}

static void test_pauses_grow(void **state)
{
    static const double wanted[] = {0, 1, 4, 16, 60, 60};

    for (int i = 0; i < 6; i++)
        assert_float_equal(dt_restart_pause(i, 1, 60), wanted[i], 0);
    assert_float_equal(dt_restart_pause(INT64_MAX, 1, 60), 60, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_is_known_completes_a_run),
        cmocka_unit_test(test_facts_determine_the_next_attempt),
        cmocka_unit_test(test_the_pause_before_growing_doubles),
        cmocka_unit_test(test_impossible_restarts_end_the_run),
        cmocka_unit_test(test_the_same_error_at_once_ends_a_run),
        cmocka_unit_test(test_reasons_are_compared_without_their_numbers),
        cmocka_unit_test(test_pauses_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
