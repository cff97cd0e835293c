/* Expressions with named groups: what is found, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/named_groups.h"

/* Wants the group of the expression to be `wanted` in the text; NULL: no match, or the group took no part. */
static void finds(const char *pattern, const char *text, const char *name, const char *wanted)
{
    dt_named_groups *groups;
    const char *found;
    size_t length = 0;

    assert_int_equal(dt_named_groups_open(&groups, pattern, NULL), DT_OK);
    if (!dt_named_groups_match(groups, text)) {
        assert_null(wanted);
    } else {
        found = dt_named_groups_text(groups, dt_named_groups_find(groups, name), text, &length);
        if (wanted == NULL)
            assert_null(found);
        else
            assert_true(strlen(wanted) == length && memcmp(found, wanted, length) == 0);
    }
    dt_named_groups_close(groups);
}

static void test_named_groups_of_both_spellings_are_found(void **state)
{
    const char *line = "[12:00] step 17/200 | loss: 2.5e-01 (lr 3e-4)";

    finds("step (?P<step>\\d+)/\\d+.*loss: (?P<loss>[\\d.e+-]+)", line, "step", "17");
    finds("step (?P<step>\\d+)/\\d+.*loss: (?P<loss>[\\d.e+-]+)", line, "loss", "2.5e-01");
    finds("(?:step|iter)\\s(?<step>\\d+)", line, "step", "17");
    finds("(step|iter) (?<step>\\d+)", line, "step", "17");
    finds("lr (?P<lr>[^)\\s]+)", line, "lr", "3e-4");
    finds("\\((?P<x>\\w+)", line, "x", "lr");
    finds("\\[(?P<x>[^]]*)\\]", line, "x", "12:00");
}

static void test_a_group_outside_of_the_match_is_not_there(void **state)
{
    finds("step (?P<step>\\d+)( loss (?P<loss>\\d+))?", "step 3", "loss", NULL);
    finds("step (?P<step>\\d+)", "epoch 3", "step", NULL);
}

static void test_what_is_not_supported_is_refused(void **state)
{
    static const char *const wrong[] = {
        "(?P<a>.*?)x", "(?P<a>x)(?P<a>y)", "(?=x)",     "(?<=x)y",     "(?i)x",
        "(?P<>x)",     "(?P<a b>x)",       "(?P<a",     "[abc",        "[\\b]",
        "x\\",         "\\bword",          "(unclosed", "*x(?P<a>)**", "x++",
        "(?P=a)",      "(?P<a>\\1",
    };
    dt_named_groups *groups;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        dt_error err = DT_ERROR_INIT;

        assert_int_equal(dt_named_groups_open(&groups, wrong[i], &err), DT_ERR_RECIPE);
        assert_null(groups);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_groups_of_both_spellings_are_found),
        cmocka_unit_test(test_a_group_outside_of_the_match_is_not_there),
        cmocka_unit_test(test_what_is_not_supported_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
