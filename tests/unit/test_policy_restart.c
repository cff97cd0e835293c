/* Whether another attempt follows, by a table of facts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/restart.h"

#include "base/banned.h"

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

/* Checkpoints are read only where they matter. */
static void test_impossible_restarts_end_the_run(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!dt_restart_is_possible(&rows[i].facts))
            assert_int_equal(dt_restart_decide(&rows[i].facts).act, DT_RESTART_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_determine_the_next_attempt),
        cmocka_unit_test(test_impossible_restarts_end_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
