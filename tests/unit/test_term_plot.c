/* Curves as text: the height of a value, how points are joined, and terminals without Braille dots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runner/term/term.h"

static const dt_term plain = {.fd = -1, .columns = 80};
static const dt_term dots = {.fd = -1, .columns = 80, .unicode = true};

static void add(dt_strbuf *out, const dt_term *term, const double *const *curves, size_t count,
                size_t buckets)
{
    const dt_plot plot = {.curves = curves,
                          .curves_count = count,
                          .buckets = buckets,
                          .first_step = 0,
                          .last_step = 2000,
                          .columns = 31,
                          .rows = 5};
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(out);
    dt_plot_add(out, term, &plot, &arena);
    dt_arena_release(&arena);
}

static void test_letters_replace_missing_dots(void **state)
{
    const double falling[] = {4, 3, 2, 1, 0}, flat[] = {4, NAN, NAN, NAN, 4};
    const double *const curves[] = {falling, flat};
    dt_strbuf text;

    add(&text, &plain, curves, 2, 5);
    assert_string_equal(text.data, "        4 |aaaaaabbbbbbbbbbbbbb\n"
                                   "          |     aaaaaaaaa\n"
                                   "        0 |             aaaaaaa\n"
                                   "          +--------------------\n"
                                   "           0              2,000\n");
    dt_strbuf_release(&text);
}

static void test_one_curve_is_dots_without_colour_too(void **state)
{
    const double values[] = {0, 1};
    const double *const curves[] = {values};
    dt_strbuf text;

    add(&text, &dots, curves, 1, 2);
    assert_non_null(strstr(text.data, "\xe2\xa0")); /* characters from U+2800 on */
    assert_null(strchr(text.data, 'a'));
    dt_strbuf_release(&text);
}

static void test_nothing_is_drawn_of_nothing(void **state)
{
    const double none[] = {NAN, INFINITY, NAN}, same[] = {3, 3, 3};
    const double *curves[] = {none};
    dt_strbuf text;

    add(&text, &plain, curves, 1, 3);
    assert_string_equal(text.data, "");
    dt_strbuf_release(&text);
    curves[0] = same;
    add(&text, &plain, curves, 1, 3); /* a single value gives a line */
    assert_non_null(strstr(text.data, "aaaaaaaaaaaaaaaaaaaa\n"));
    dt_strbuf_release(&text);
}

static void test_a_spark_goes_from_the_lowest_to_the_highest(void **state)
{
    const double values[] = {1, NAN, 8, 4.5}, gaps[] = {NAN, 8, NAN, NAN, 1, NAN};
    const double none[] = {NAN, NAN};
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_plot_spark(&text, &dots, values, 4);
    assert_string_equal(text.data,
                        "\xe2\x96\x81\xe2\x96\x85\xe2\x96\x88\xe2\x96\x85"); /* no hole */
    dt_strbuf_reset(&text);
    dt_plot_spark(&text, &dots, gaps, 6);
    assert_string_equal(text.data, "\xe2\x96\x88\xe2\x96\x86\xe2\x96\x83\xe2\x96\x81");
    dt_strbuf_reset(&text);
    dt_plot_spark(&text, &dots, none, 2);
    assert_string_equal(text.data, "");
    dt_plot_spark(&text, &plain, values, 4);
    assert_string_equal(text.data, "");
    dt_strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_replace_missing_dots),
        cmocka_unit_test(test_one_curve_is_dots_without_colour_too),
        cmocka_unit_test(test_nothing_is_drawn_of_nothing),
        cmocka_unit_test(test_a_spark_goes_from_the_lowest_to_the_highest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
