/* The table of states and events of an attempt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/supervisor/session/session_int.h"

static void test_each_state_says_what_each_event_means(void **unused)
{
    for (dt_run_state state = 0; state < DT_RUN_STATE_COUNT; state++)
        for (dt_state_event event = 0; event < DT_STATE_EVENT_COUNT; event++)
            if (dt_state_reaction(state, event) == DT_REACTION_MISSING)
                fail_msg("state '%s' says nothing of event %d", dt_run_state_name(state), event);
}

static void test_an_ended_attempt_handles_no_event(void **unused)
{
    for (dt_run_state state = 0; state < DT_RUN_STATE_COUNT; state++)
        for (dt_state_event event = 0; event < DT_STATE_EVENT_COUNT; event++)
            if (dt_run_state_is_terminal(state))
                assert_int_not_equal(dt_state_reaction(state, event), DT_REACTION_HANDLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_state_says_what_each_event_means),
        cmocka_unit_test(test_an_ended_attempt_handles_no_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
