/* Which rank has other parameters than the ranks that should have the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/train/train_int.h"

static void test_the_odd_one_is_found_among_its_own_kind(void **state)
{
    static const struct {
        double numbers[4], kinds[4];
        int64_t odd, agreeing;
    } cases[] = {
        {{5, 5, 5, 5}, {1, 1, 1, 1}, -1, 0},
        {{5, 5, 6, 5}, {1, 1, 1, 1}, 2, 3},
        {{5, 6, 7, 5}, {1, 1, 1, 1}, 1, 3},
        {{6, 6, 5, 5}, {1, 1, 1, 1}, 0, 2},  /* it is unknown which of them is wrong */
        {{5, 6, 7, 8}, {1, 2, 3, 4}, -1, 0}, /* all round differently */
        {{5, 5, 6, 6}, {1, 1, 2, 2}, -1, 0},
        {{5, 5, 6, 7}, {1, 1, 2, 2}, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t agreeing;

        assert_int_equal(dt_replicas_odd_one(cases[i].numbers, cases[i].kinds, 4, &agreeing),
                         cases[i].odd);
        assert_int_equal(agreeing, cases[i].agreeing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_odd_one_is_found_among_its_own_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
