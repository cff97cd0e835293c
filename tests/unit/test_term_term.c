/* term: styles, widths and cuts; escape sequences in text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/term/term.h"

static const dt_term plain = {.fd = -1, .columns = 80};
static const dt_term coloured = {
    .fd = -1, .live = true, .colour = true, .unicode = true, .columns = 80};

static void test_plain_output_holds_no_escape(void **state)
{
    dt_strbuf out, all;

    dt_strbuf_init(&out);
    dt_strbuf_init(&all);
    for (int style = 0; style < DT_STYLE_COUNT; style++) {
        dt_term_add(&out, &plain, (dt_style)style, "x%d", style);
        dt_strbuf_add_fmt(&all, "x%d", style);
    }
    assert_null(strchr(out.data, '\x1b'));
    assert_string_equal(out.data, all.data);
    dt_strbuf_release(&all);
    dt_strbuf_release(&out);
}

static void test_wide_characters_take_two_columns(void **state)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    assert_int_equal(dt_term_width("\xe6\x97\xa5\xe6\x9c\xac x"), 6);
    dt_term_add_clipped(&out, &plain, "\xe6\x97\xa5\xe6\x9c\xac x", 3);
    assert_string_equal(out.data, "\xe6\x97\xa5");
    dt_strbuf_reset(&out);
    dt_term_add_clipped(&out, &plain, "e\xcc\x81x", 1); /* a combining mark has no width */
    assert_string_equal(out.data, "e\xcc\x81");
    dt_strbuf_release(&out);
}

static void test_a_long_text_is_wrapped_at_blanks_and_whole(void **state)
{
    static const struct {
        size_t indent, columns;
        const char *text, *expected;
    } cases[] = {
        {2, 12, "one two three four", "  one two\n  three four\n"},
        {2, 12, "exactly-10 x", "  exactly-10\n  x\n"},
        {1, 5, "longword a", " long\n word\n a\n"},
        {0, 4, "a\nb", "a\nb\n"},
        {2, 0, "no end of the line", "  no end of the line\n"},
        {2, 12, "", ""},
        {0, 3, "\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\n\xe6\x9c\xac\n"},
    };
    dt_strbuf out;

    dt_strbuf_init(&out);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_strbuf_reset(&out);
        dt_term_add_wrapped(&out, &plain, DT_STYLE_DIM, cases[i].indent, cases[i].columns,
                            cases[i].text);
        assert_string_equal(out.data, cases[i].expected);
    }
    dt_strbuf_release(&out);
}

static void test_a_style_ends_where_its_text_ends(void **state)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_term_add(&out, &coloured, DT_STYLE_BAD, "no");
    assert_string_equal(out.data, "\x1b[31mno\x1b[0m");
    dt_strbuf_release(&out);
}

static void test_text_cannot_steer_the_terminal(void **state)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_term_add(&out, &coloured, DT_STYLE_PLAIN, "%s",
                "a\x1b[2Jb\rc\x07"
                "d\te\x7f\n");
    assert_string_equal(out.data, "a?[2Jb?c?d e?\n");
    dt_strbuf_release(&out);
}

/* Only dtrun's own escape sequences for styles are kept, and only with colour. */
static void test_printed_text_has_no_sequences_but_dtruns_styles(void **state)
{
    static const char text[] = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \xc2\x9b"
                               "2J \xe2\x80\xae"
                               "abc \xff\ttab\n";
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_term_add_whole(&out, &coloured, text);
    assert_string_equal(out.data, "\x1b[31mred\x1b[0m ?]0;title? ?[2J ?2J ?abc ?\ttab\n");
    dt_strbuf_reset(&out);
    dt_term_add_whole(&out, &plain, text);
    assert_string_equal(out.data, "red ?]0;title? ?[2J ?2J ?abc ?\ttab\n");
    dt_strbuf_reset(&out);
    dt_term_add_clipped(&out, &coloured, "\x1b]8;;x\x1b\\ab", 4);
    assert_string_equal(out.data, "?]8;\x1b[0m");
    dt_strbuf_reset(&out);
    dt_term_add_whole(&out, &coloured, "end\x1b");
    assert_string_equal(out.data, "end?");
    dt_strbuf_release(&out);
}

static void test_text_of_any_length_is_added_whole(void **state)
{
    char *text = malloc(5001);
    dt_strbuf out;

    assert_non_null(text);
    memset(text, 'x', 5000);
    text[5000] = '\0';
    dt_strbuf_init(&out);
    dt_term_add(&out, &plain, DT_STYLE_PLAIN, "%s.", text);
    assert_int_equal(out.length, 5001);
    assert_int_equal(out.data[5000], '.');
    dt_strbuf_release(&out);
    free(text);
}

static void test_width_counts_characters_and_no_escapes(void **state)
{
    assert_int_equal(dt_term_width(""), 0);
    assert_int_equal(dt_term_width("abc"), 3);
    assert_int_equal(dt_term_width("\x1b[31mabc\x1b[0m"), 3);
    assert_int_equal(dt_term_width("━━╸"), 3);
    assert_int_equal(dt_term_width("\x1b[3"), 3); /* not a complete style: shown as ?[3 */
    assert_int_equal(dt_term_width("\x1b]0;x\x07"), 6);
    assert_int_equal(dt_term_width("\xff\xff"), 2);
}

static void test_a_cut_keeps_escapes_whole_and_ends_styles(void **state)
{
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_term_add_clipped(&out, &coloured, "\x1b[31m━━━━\x1b[0m", 2);
    assert_string_equal(out.data, "\x1b[31m━━\x1b[0m");
    dt_strbuf_reset(&out);
    dt_term_add_clipped(&out, &coloured, "abc", 3);
    assert_string_equal(out.data, "abc");
    dt_strbuf_reset(&out);
    dt_term_add_clipped(&out, &plain, "abc", 0);
    assert_string_equal(out.data, "");
    dt_strbuf_release(&out);
}

static void test_a_bar_is_as_wide_as_asked(void **state)
{
    static const double shares[] = {-1, 0, 1e-9, 0.25, 0.5, 0.519, 0.999, 1, 7};
    dt_strbuf out;

    dt_strbuf_init(&out);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        for (size_t columns = 1; columns < 12; columns++) {
            dt_strbuf_reset(&out);
            dt_bar_add(&out, &coloured, DT_STYLE_ACCENT, shares[i], columns);
            assert_int_equal(dt_term_width(out.data), columns);
            dt_strbuf_reset(&out);
            dt_bar_add(&out, &plain, DT_STYLE_ACCENT, shares[i], columns);
            assert_int_equal(strlen(out.data), columns);
        }
    }
    dt_strbuf_reset(&out);
    dt_bar_add(&out, &plain, DT_STYLE_ACCENT, 0.5, 10);
    assert_string_equal(out.data, "#####-----");
    dt_strbuf_release(&out);
}

static void test_a_pipe_is_not_a_terminal(void **state)
{
    int ends[2];
    dt_term term;

    assert_int_equal(pipe(ends), 0);
    dt_term_init(&term, ends[1]);
    assert_false(term.live);
    assert_false(term.colour);
    assert_int_equal(term.columns, 80);
    close(ends[0]);
    close(ends[1]);
}

static void test_no_color_and_dumb_terminals_are_respected(void **state)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    dt_term term;

    if (terminal < 0)
        skip();
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    dt_term_init(&term, terminal);
    assert_true(term.live && term.colour);
    setenv("NO_COLOR", "1", 1);
    dt_term_init(&term, terminal);
    assert_true(term.live && !term.colour);
    setenv("TERM", "dumb", 1);
    unsetenv("NO_COLOR");
    dt_term_init(&term, terminal);
    assert_true(!term.live && !term.colour);
    close(terminal);
}

static void test_unicode_follows_the_locale(void **state)
{
    dt_term term;

    unsetenv("LC_CTYPE");
    setenv("LC_ALL", "C", 1);
    setenv("LANG", "de_DE.UTF-8", 1);
    dt_term_init(&term, -1);
    assert_false(term.unicode);
    unsetenv("LC_ALL");
    dt_term_init(&term, -1);
    assert_true(term.unicode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_output_holds_no_escape),
        cmocka_unit_test(test_wide_characters_take_two_columns),
        cmocka_unit_test(test_a_long_text_is_wrapped_at_blanks_and_whole),
        cmocka_unit_test(test_a_style_ends_where_its_text_ends),
        cmocka_unit_test(test_text_cannot_steer_the_terminal),
        cmocka_unit_test(test_printed_text_has_no_sequences_but_dtruns_styles),
        cmocka_unit_test(test_text_of_any_length_is_added_whole),
        cmocka_unit_test(test_width_counts_characters_and_no_escapes),
        cmocka_unit_test(test_a_cut_keeps_escapes_whole_and_ends_styles),
        cmocka_unit_test(test_a_bar_is_as_wide_as_asked),
        cmocka_unit_test(test_a_pipe_is_not_a_terminal),
        cmocka_unit_test(test_no_color_and_dumb_terminals_are_respected),
        cmocka_unit_test(test_unicode_follows_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
