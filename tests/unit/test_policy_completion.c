/* Whether a run is complete, from what is known about it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/supervisor/policy/completion.h"

#include "base/banned.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_is_known_completes_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
