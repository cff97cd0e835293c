/* pattern: what the regular expressions of normalizers replace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tokens/tokens_int.h"

#define MARK "\xe2\x96\x81"

static void replace(dt_strbuf *out, const char *expression, const char *text, size_t length)
{
    dt_pattern pattern;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_true(dt_pattern_parse(&pattern, &arena, expression));
    dt_strbuf_init(out);
    dt_pattern_replace(out, &pattern, text, length, "<>");
    dt_arena_release(&arena);
}

static void test_matches_are_as_long_as_possible_and_from_the_left(void **state)
{
    static const struct {
        const char *expression, *text, *wanted;
    } cases[] = {
        {"[\n\r\t]", "a\n\tb", "a<><>b"},
        {"\\s{2,}|[\n\r\t]", " a  b\tc \n d\xc2\xa0 e", " a<>b<>c<>d<>e"},
        {" +" MARK, "a   " MARK "b " MARK MARK "   c " MARK, "a<>b<>" MARK "   c<>"},
        {"^" MARK "+$", MARK MARK, "<>"},
        {"^" MARK "+$", MARK MARK "a", MARK MARK "a"},
        {"^" MARK "+$", "a" MARK, "a" MARK},
        {"x{2,3}", "xxxxxxx", "<><>x"},
        {"x{2,3}y", "xxxxy xy xxy", "x<> xy <>"},
        {"[a-c]+[0-9]{1,2}", "abc123 a ab", "<>3 a ab"},
        {"\\p{L}+",
         "\xc3\xa4"
         "b1",
         "<>1"},
        {"a", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_strbuf out;

        replace(&out, cases[i].expression, cases[i].text, strlen(cases[i].text));
        assert_string_equal(out.data, cases[i].wanted);
        dt_strbuf_release(&out);
    }
}

/* A run of a million blanks without what must follow is read once, not once from each of its blanks. */
static void test_time_is_linear(void **state)
{
    size_t length = 1000000;
    char *text = malloc(length);
    dt_strbuf out;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', length);
    replace(&out, " +" MARK, text, length);
    assert_int_equal(out.length, length);
    dt_strbuf_release(&out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches_are_as_long_as_possible_and_from_the_left),
        cmocka_unit_test(test_time_is_linear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
