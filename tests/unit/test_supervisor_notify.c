#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/supervisor/supervisor.h"

static void check(const char *text, dt_status wanted, const char *filled_in)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf out;

    dt_strbuf_init(&out);
    assert_int_equal(dt_notify_expand(&out, text, &err), wanted);
    if (wanted == DT_OK)
        assert_string_equal(out.data, filled_in);
    else
        assert_non_null(strstr(err.message, filled_in));
    dt_strbuf_release(&out);
}

static void test_references_are_filled_in(void **state)
{
    setenv("DT_TEST_TOKEN", "a/b", 1);
    unsetenv("DT_TEST_NONE");
    check("https://x/y", DT_OK, "https://x/y");
    check("https://x/${env:DT_TEST_TOKEN}/z", DT_OK, "https://x/a/b/z");
    check("${env:DT_TEST_TOKEN}${env:DT_TEST_NONE:-other}", DT_OK, "a/bother");
    check("${env:DT_TEST_TOKEN:-other}", DT_OK, "a/b");
    check("${HOME}", DT_OK, "${HOME}");
}

static void test_what_cannot_be_filled_in_names_the_variable(void **state)
{
    check("https://x/${env:DT_TEST_NONE}", DT_ERR_RECIPE, "'DT_TEST_NONE'");
    check("https://x/${env:DT_TEST_NONE", DT_ERR_RECIPE, "no '}'");
    check("https://x/${env:}", DT_ERR_RECIPE, "does not name a variable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references_are_filled_in),
        cmocka_unit_test(test_what_cannot_be_filled_in_names_the_variable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
