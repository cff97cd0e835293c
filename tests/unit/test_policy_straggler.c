/* Which rank delays the others, by the time that each rank waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/policy/watchdog.h"

enum { RANKS = 4 };

static void test_the_rank_that_waits_least_is_found(void **state)
{
    static const struct {
        double waited[RANKS];
        int64_t rank;
        double seconds;
    } cases[] = {
        {{0.5, 0.5, 0.0, 0.5}, 2, 0.5},   {{0.0, 1.0, 2.0, 3.0}, 0, 2.0},
        {{3.0, 2.0, 1.0, 0.25}, 3, 1.75}, {{1.0, 1.0, 1.0, 1.0}, 0, 0.0},
        {{9.0, 0.5, 0.5, 0.25}, 3, 0.25},
    };
    dt_straggler_finding found = {0};
    dt_straggler_rank ranks[RANKS];
    dt_straggler straggler;

    dt_straggler_init(&straggler, ranks, RANKS);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int64_t rank = RANKS - 1; rank > 0; rank--)
            assert_false(dt_straggler_add(&straggler, rank, cases[i].waited[rank], &found));
        assert_true(dt_straggler_add(&straggler, 0, cases[i].waited[0], &found));
        assert_int_equal(found.rank, cases[i].rank);
        assert_true(found.seconds == cases[i].seconds);
    }
}

/* A rank that reports twice counts once, with its last report. */
static void test_all_ranks_must_have_reported(void **state)
{
    dt_straggler_finding found = {0};
    dt_straggler_rank ranks[2];
    dt_straggler straggler;

    dt_straggler_init(&straggler, ranks, 2);
    assert_false(dt_straggler_add(&straggler, 1, 0.25, &found));
    assert_false(dt_straggler_add(&straggler, 1, 8.0, &found));
    assert_true(dt_straggler_add(&straggler, 0, 1.0, &found));
    assert_int_equal(found.rank, 0);
    assert_true(found.seconds == 7.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rank_that_waits_least_is_found),
        cmocka_unit_test(test_all_ranks_must_have_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
