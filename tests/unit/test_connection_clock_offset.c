/* Estimates how far a node's clock is ahead, from answers and from unrequested messages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/supervisor/connection/connection_int.h"

static void test_the_fastest_answer_is_used(void **state)
{
    dt_clock_offset offset;

    dt_clock_offset_init(&offset);
    assert_true(isinf(offset.error_ms));
    dt_clock_offset_answered(&offset, 1000, 6100,
                             1200); /* between 1000 and 1200 here it was 6100 there */
    assert_int_equal(offset.ahead_ms, 5000);
    assert_true(offset.error_ms == 100);
    dt_clock_offset_answered(&offset, 2000, 7000, 2800); /* a slower answer says less */
    assert_int_equal(offset.ahead_ms, 5000);
    dt_clock_offset_answered(&offset, 3000, 8030, 3020);
    assert_int_equal(offset.ahead_ms, 5020);
    assert_true(offset.error_ms == 10);
}

/* A message is stamped before it arrives: the stamp gives a lower bound of the offset. */
static void test_what_comes_unasked_corrects_upwards(void **state)
{
    dt_clock_offset offset;

    dt_clock_offset_init(&offset);
    dt_clock_offset_answered(&offset, 1000, 6100, 1200);
    dt_clock_offset_heard(&offset, 9000, 9500);
    assert_int_equal(offset.ahead_ms, 5000);
    dt_clock_offset_heard(&offset, 15060, 10000);
    assert_int_equal(offset.ahead_ms, 5060);
}

static void test_messages_without_a_stamp_are_ignored(void **state)
{
    dt_clock_offset offset;

    dt_clock_offset_init(&offset);
    dt_clock_offset_answered(&offset, 1000, 0, 1200);
    dt_clock_offset_heard(&offset, 0, 1200);
    assert_int_equal(offset.ahead_ms, 0);
    assert_true(isinf(offset.error_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_answer_is_used),
        cmocka_unit_test(test_what_comes_unasked_corrects_upwards),
        cmocka_unit_test(test_messages_without_a_stamp_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
