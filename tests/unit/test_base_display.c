/* How text from outside is made safe to show, form by form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/display.h"
#include "base/json.h"

#define BAD DT_UTF8_REPLACEMENT

static const struct {
    const char *what, *text, *terminal, *page;
} cases[] = {
    {"plain", "step 1", "step 1", "step 1"},
    {"letters and signs", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"right to left letters", "\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c"},
    {"joined emoji", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80",
     "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80",
     "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80"},
    {"tab, line feed", "a\tb\nc", "a\tb\nc", "a\tb\nc"},
    {"carriage return", "good\rbad", "good?bad", "goodbad"},
    {"bell, backspace, DEL", "\a\b\x7f", "???", ""},
    {"colours", "\x1b[31mred\x1b[0m", "?[31mred?[0m", "red"},
    {"a title (OSC, BEL)", "a\x1b]0;pwned\ab", "a?]0;pwned?b", "ab"},
    {"a link (OSC, ST)", "\x1b]8;;http://x\x1b\\go\x1b]8;;\x1b\\", "?]8;;http://x?\\go?]8;;?\\",
     "go"},
    {"clipboard", "\x1b]52;c;cm0=\a", "?]52;c;cm0=?", ""},
    {"DCS, APC, PM, SOS", "\x1bPx\x1b\\\x1b_y\x1b\\\x1b^z\x1b\\\x1bXw\x1b\\",
     "?Px?\\?_y?\\?^z?\\?Xw?\\", ""},
    {"a string without an end", "a\x1b]0;title", "a?]0;title", "a]0;title"},
    {"a sequence without an end", "a\x1b[3", "a?[3", "a[3"},
    {"an escape at the end", "a\x1b", "a?", "a"},
    {"C1: CSI, OSC, NEL",
     "\xc2\x9b"
     "2J\xc2\x9d"
     "0;x\xc2\x9c\xc2\x85",
     "?2J?0;x??", "2J0;x"},
    {"C1 as bytes",
     "\x9b"
     "2J",
     "?2J", BAD "2J"},
    {"bidi overrides",
     "\xe2\x80\xae"
     "cba\xe2\x80\xac",
     "?cba?", "cba"},
    {"bidi isolates", "\xe2\x81\xa6x\xe2\x81\xa9", "?x?", "x"},
    {"bidi marks", "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???", ""},
    {"line and paragraph separators",
     "a\xe2\x80\xa8"
     "b\xe2\x80\xa9"
     "c",
     "a?b?c", "abc"},
    {"tag characters", "a\xf3\xa0\x81\xa1", "a?", "a"},
    {"annotations", "\xef\xbf\xb9\xef\xbf\xbb", "??", ""},
    {"no UTF-8",
     "a\xff\xfe"
     "b",
     "a??b", "a" BAD BAD "b"},
    {"cut off", "\xe2\x82", "??", BAD BAD},
    {"over-long", "\xc0\x9b", "??", BAD BAD},
    {"a surrogate", "\xed\xa0\x80", "???", BAD BAD BAD},
};

static void test_each_form_shows_what_may_be_shown(void **state)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_strbuf_reset(&out);
        dt_display_add(&out, cases[i].text, strlen(cases[i].text));
        if (strcmp(out.data, cases[i].terminal) != 0)
            print_error("terminal: %s\n", cases[i].what);
        assert_string_equal(out.data, cases[i].terminal);
        dt_strbuf_reset(&out);
        dt_display_add_page(&out, cases[i].text, strlen(cases[i].text));
        if (strcmp(out.data, cases[i].page) != 0)
            print_error("page: %s\n", cases[i].what);
        assert_string_equal(out.data, cases[i].page);
    }
    dt_strbuf_reset(&out);
    dt_display_add(&out, "a\0b", 3);
    assert_string_equal(out.data, "a?b");
    dt_strbuf_release(&out);
}

static void test_a_terminal_gives_text_so_many_columns(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
    } wide[] = {
        {"", 0},
        {"plain", 5},
        {"a\tb", 3},
        {"\xe6\x96\x87\xe6\x9b\xb8", 4} /* two of CJK */,
        {"e\xcc\x81", 1} /* an accent upon it */,
        {"\xf0\x9f\x93\x9a!", 3} /* books */,
        {"\x1b\xff", 2} /* shown as "??" */,
        {"\xe2\x80\xae", 1},
    };

    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        assert_int_equal(dt_display_columns(wide[i].text, strlen(wide[i].text)), wide[i].columns);
}

/* JSON hides the same characters, and its value is unchanged. */
static void test_json_escapes_what_must_not_be_shown(void **state)
{
    dt_strbuf out, shown;

    dt_strbuf_init(&out);
    dt_strbuf_init(&shown);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *value = dt_json_text(cases[i].text), *back;

        for (int pretty = 0; pretty < 2; pretty++) {
            dt_strbuf_reset(&out);
            (pretty ? dt_json_write_pretty : dt_json_write)(&out, value);
            dt_strbuf_reset(&shown);
            dt_display_add(&shown, out.data, out.length);
            assert_string_equal(shown.data, out.data);
            assert_int_equal(dt_json_parse(&back, out.data, out.length, "value", NULL), DT_OK);
            assert_true(json_equal(value, back));
            json_decref(back);
        }
        json_decref(value);
    }
    dt_strbuf_reset(&out);
    dt_strbuf_add_str(&out, "\xe2\x80\xae"); /* existing text is not changed */
    dt_json_write(&out, json_true());
    assert_string_equal(out.data, "\xe2\x80\xaetrue");
    dt_strbuf_release(&shown);
    dt_strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_shows_what_may_be_shown),
        cmocka_unit_test(test_a_terminal_gives_text_so_many_columns),
        cmocka_unit_test(test_json_escapes_what_must_not_be_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
