#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runner/agent/rank/output.h"
#include "runner/channel/stream.h"

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

/* A line that a process prints for display: pieces at times in ms, and "show" where the time of an incomplete line is
 * looked at. */
static void test_lines_for_display(void **state)
{
    static const struct {
        struct {
            int64_t ms;
            const char *text; /* NULL: show */
        } pieces[8];
        const char *lines;
    } cases[] = {
        {{{0, "a\r\nb\n\nc"}}, "a|b||c|"},
        {{{0, "\r"}, {0, "\n"}, {0, "a\r"}, {5, "\nb"}}, "|a|b|"},
        /* states of a bar: the first, one a second, the last */
        {{{1000, "\r 1%"},
          {1100, "\r 2%"},
          {1200, "\r 3%"},
          {2200, "\r 4%"},
          {2300, "\r 5%\nend\n"}},
         " 1%| 3%| 5%|end|"},
        {{{1000, "1%\r2%\r3%\r"}, {1100, "4%\r"}}, "1%|4%|"},
        /* the head of a traceback stays */
        {{{1000, "\r99%"}, {1010, "\r100%"}, {1020, "Traceback:\n  File\n"}},
         "99%|100%Traceback:|  File|"},
        /* an incomplete line is shown after a second, and goes on in another one */
        {{{1000, "load"}, {1500, NULL}, {2000, NULL}, {3000, NULL}, {4000, "ed\n\n"}}, "load|ed||"},
        {{{1000, "ask? "}, {2000, NULL}, {4000, "\nx\n"}}, "ask? |x|"},
        {{{1000, "\r1%"}, {1100, "\r2%"}, {2200, NULL}, {2300, "\r3%"}, {3400, NULL}}, "1%|2%|3%|"},
        /* a state that is too long does not hide the next line */
        {{{1000, "12345678901234567890"}, {1000, "\rok\n"}}, "1234567890123456+|ok|"},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        dt_strbuf out;
        dt_lines lines;

        dt_strbuf_init(&out);
        dt_lines_init(&lines, 16);
        lines.show_ms = 1000;
        for (size_t i = 0; i < 8; i++) {
            const char *text = cases[c].pieces[i].text;

            if (text == NULL && cases[c].pieces[i].ms == 0)
                break;
            lines.now_ms = cases[c].pieces[i].ms;
            if (text == NULL)
                (void)dt_lines_show(&lines, join, &out);
            else
                dt_lines_feed(&lines, text, strlen(text), join, &out);
        }
        dt_lines_finish(&lines, join, &out);
        assert_string_equal(out.data, cases[c].lines);
        dt_lines_release(&lines);
        dt_strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_for_display),
        cmocka_unit_test(test_good_text_stays_as_it_is),
        cmocka_unit_test(test_bytes_that_are_not_utf8_are_replaced_one_by_one),
        cmocka_unit_test(test_a_carriage_return_at_the_end_is_removed),
        cmocka_unit_test(test_a_cut_line_is_marked),
        cmocka_unit_test(test_tail_keeps_the_last_fifty_in_order),
        cmocka_unit_test(test_lines_are_the_same_however_they_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
