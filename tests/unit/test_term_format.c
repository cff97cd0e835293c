/* format: numbers for people, at the limits where their form changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/term/term.h"

static void check_count(double value, const char *expected)
{
    char text[DT_FORMAT_SIZE];
    assert_string_equal(dt_format_count(text, sizeof(text), value), expected);
}

static void test_counts_keep_three_digits(void **state)
{
    check_count(0, "0");
    check_count(999, "999");
    check_count(999.6, "1.00k");
    check_count(1234, "1.23k");
    check_count(41234, "41.2k");
    check_count(999499, "999k");
    check_count(999500, "1.00M");
    check_count(124439808, "124M");
    check_count(NAN, "-");
    check_count(-1, "-");
    check_count(INFINITY, "-");
}

static void test_bytes_have_units(void **state)
{
    char text[DT_FORMAT_SIZE];

    assert_string_equal(dt_format_bytes(text, sizeof(text), 12), "12 B");
    assert_string_equal(dt_format_bytes(text, sizeof(text), 12345678), "12.3 MB");
    assert_string_equal(dt_format_bytes(text, sizeof(text), 2e21), "2000000 PB");
}

static void check_whole(int64_t value, const char *expected)
{
    char text[DT_FORMAT_SIZE];
    assert_string_equal(dt_format_whole(text, sizeof(text), value), expected);
}

static void test_whole_numbers_are_grouped(void **state)
{
    check_whole(0, "0");
    check_whole(999, "999");
    check_whole(1000, "1,000");
    check_whole(-123456, "-123,456");
    check_whole(INT64_MIN, "-9,223,372,036,854,775,808");
}

static void test_losses_have_four_digits_or_a_dash(void **state)
{
    char text[DT_FORMAT_SIZE];

    assert_string_equal(dt_format_loss(text, sizeof(text), 1.23456), "1.2346");
    assert_string_equal(dt_format_loss(text, sizeof(text), NAN), "-");
}

static void test_seconds_are_whole(void **state)
{
    char text[DT_FORMAT_SIZE];

    assert_string_equal(dt_format_seconds(text, sizeof(text), 0.9), "0s");
    assert_string_equal(dt_format_seconds(text, sizeof(text), 59.99), "59s");
    assert_string_equal(dt_format_seconds(text, sizeof(text), 60), "1m00s");
    assert_string_equal(dt_format_seconds(text, sizeof(text), 3725), "1h02m");
    assert_string_equal(dt_format_seconds(text, sizeof(text), NAN), "-");
}

static void test_times_ago_pick_their_unit(void **state)
{
    char text[DT_FORMAT_SIZE];
    int64_t now = INT64_C(1700000000000);

    assert_string_equal(dt_format_ago(text, sizeof(text), 0, now), "-");
    assert_string_equal(dt_format_ago(text, sizeof(text), now, now), "just now");
    assert_string_equal(dt_format_ago(text, sizeof(text), now - 59000, now), "59s ago");
    assert_string_equal(dt_format_ago(text, sizeof(text), now - 60000, now), "1m ago");
    assert_string_equal(dt_format_ago(text, sizeof(text), now - 7200000, now), "2h ago");
    assert_string_equal(dt_format_ago(text, sizeof(text), now - 864000000, now), "10d ago");
}

static void test_exact_numbers_read_back_the_same(void **state)
{
    static const double values[] = {0, 0.1, 1.0 / 3, 1e-310, 123456789.123456789, -2.5, 1e300};
    char text[DT_FORMAT_SIZE];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        dt_format_exact(text, sizeof(text), values[i]);
        assert_true(strtod(text, NULL) == values[i]);
    }
    assert_string_equal(dt_format_exact(text, sizeof(text), 0.1), "0.1");
    assert_string_equal(dt_format_exact(text, sizeof(text), NAN), "nan");
    assert_string_equal(dt_format_exact(text, sizeof(text), -INFINITY), "-inf");
}

/* Tries one more digit at a time, which is the definition. */
static void fewest_digits(char *text, size_t size, double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

static void test_exact_numbers_have_the_fewest_digits(void **state)
{
    char text[DT_FORMAT_SIZE], wanted[DT_FORMAT_SIZE];
    uint64_t bits = 88172645463325252u;

    for (int i = 0; i < 20000; i++) {
        double value;

        bits ^= bits << 13; /* xorshift: any double */
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof(value));
        value = i % 3 == 0 ? value : i % 3 == 1 ? ldexp(1, i / 10 - 1000) : (float)(1 / (i + 0.7));
        if (isnan(value))
            continue;
        fewest_digits(wanted, sizeof(wanted), value);
        assert_string_equal(dt_format_exact(text, sizeof(text), value), wanted);
    }
}

static void test_values_of_any_size_have_no_exponent_that_people_do_not_write(void **state)
{
    static const struct {
        double value;
        const char *expected;
    } cases[] = {{1.84213, "1.8421"}, {-0.0126, "-0.0126"}, {3e-5, "3e-05"},
                 {9999, "9999"},      {240251, "240k"},     {-8440.4, "-8440.4"},
                 {-84404, "-84.4k"},  {1.1e12, "1.10T"},    {0, "0"},
                 {NAN, "-"}};
    char text[DT_FORMAT_SIZE];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(dt_format_value(text, sizeof(text), cases[i].value), cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_keep_three_digits),
        cmocka_unit_test(test_bytes_have_units),
        cmocka_unit_test(test_whole_numbers_are_grouped),
        cmocka_unit_test(test_losses_have_four_digits_or_a_dash),
        cmocka_unit_test(test_seconds_are_whole),
        cmocka_unit_test(test_times_ago_pick_their_unit),
        cmocka_unit_test(test_exact_numbers_read_back_the_same),
        cmocka_unit_test(test_exact_numbers_have_the_fewest_digits),
        cmocka_unit_test(test_values_of_any_size_have_no_exponent_that_people_do_not_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
