#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runner/agent/rank/tail.h"
#include "runner/agent/rank/text.h"
#include "runner/channel/lines.h"

static void check_clean(const char *bytes, size_t length, bool cut, const char *wanted)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_text_clean(&out, bytes, length, cut);
    assert_string_equal(out.data, wanted);
    dt_strbuf_release(&out);
}

static void test_good_text_stays_as_it_is(void **state)
{
    check_clean("step 1, gr\xC3\xBC\xC3\x9F"
                "e \xF0\x9F\x98\x80",
                20, false,
                "step 1, gr\xC3\xBC\xC3\x9F"
                "e \xF0\x9F\x98\x80");
}

static void test_bytes_that_are_not_utf8_are_replaced_one_by_one(void **state)
{
    check_clean("a\xFF\xFE"
                "b",
                4, false,
                "a\xEF\xBF\xBD\xEF\xBF\xBD"
                "b");
    check_clean("\xC3", 1, false, "\xEF\xBF\xBD");                 /* its second byte is missing */
    check_clean("\xC0\x80", 2, false, "\xEF\xBF\xBD\xEF\xBF\xBD"); /* overlong NUL */
    check_clean("\xED\xA0\x80", 3, false,
                "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* half of a surrogate pair */
    check_clean("a\0b", 3, false,
                "a\xEF\xBF\xBD"
                "b");
}

static void test_a_carriage_return_at_the_end_is_removed(void **state)
{
    check_clean("50%\r", 4, false, "50%");
    check_clean("\r", 1, false, "");
}

static void test_a_cut_line_is_marked(void **state)
{
    check_clean("long", 4, true, "long" DT_TEXT_CUT_MARK);
}

static void test_tail_keeps_the_last_fifty_in_order(void **state)
{
    dt_tail tail = {{0}, 0};
    char text[32];
    json_t *lines;

    for (int i = 0; i < 120; i++) {
        snprintf(text, sizeof(text), "line %d", i);
        dt_tail_add(&tail, text);
    }
    lines = dt_tail_to_json(&tail);
    assert_int_equal(json_array_size(lines), DT_TAIL_LINES);
    assert_string_equal(json_string_value(json_array_get(lines, 0)), "line 70");
    assert_string_equal(json_string_value(json_array_get(lines, 49)), "line 119");
    json_decref(lines);
    dt_tail_release(&tail);
}

static bool join(void *context, const char *text, size_t length, bool cut)
{
    dt_strbuf_add(context, text, length);
    dt_strbuf_add_str(context, cut ? "+|" : "|");
    return true;
}

static void test_lines_are_the_same_however_they_arrive(void **state)
{
    const char input[] = "one\n\nabcdefgh\nabcdefghi\nlast";

    for (size_t step = 1; step < sizeof(input); step++) {
        dt_strbuf out;
        dt_lines lines;

        dt_strbuf_init(&out);
        dt_lines_init(&lines, 8);
        for (size_t at = 0; at < strlen(input); at += step)
            dt_lines_feed(&lines, input + at, strlen(input) - at < step ? strlen(input) - at : step,
                          join, &out);
        dt_lines_finish(&lines, join, &out);
        assert_string_equal(out.data, "one||abcdefgh|abcdefgh+|last|");
        dt_lines_release(&lines);
        dt_strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_text_stays_as_it_is),
        cmocka_unit_test(test_bytes_that_are_not_utf8_are_replaced_one_by_one),
        cmocka_unit_test(test_a_carriage_return_at_the_end_is_removed),
        cmocka_unit_test(test_a_cut_line_is_marked),
        cmocka_unit_test(test_tail_keeps_the_last_fifty_in_order),
        cmocka_unit_test(test_lines_are_the_same_however_they_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
