#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

#define VARIABLE "DTRUN_TEST_LIBRARY"

static void test_without_the_variable_the_loader_looks(void **state)
{
    double (*root)(double) = NULL;
    dt_error err = DT_ERROR_INIT;
    void *library;

    unsetenv(VARIABLE);
    assert_int_equal(dt_library_open(&library, "libm.so.6", VARIABLE, &err), DT_OK);
    assert_int_equal(dt_library_find(&root, library, "sqrt", &err), DT_OK);
    assert_true(fabs(root(4.0) - 2.0) < 1e-12);
    assert_int_equal(dt_library_find(&root, library, "no_such_function", &err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no_such_function"));
    setenv(VARIABLE, "", 1); /* as if unset */
    assert_int_equal(dt_library_open(&library, "libm.so.6", VARIABLE, &err), DT_OK);
}

static void test_the_variable_names_a_library_or_its_folder_and_no_other_is_taken(void **state)
{
    dt_error err = DT_ERROR_INIT;
    void *library;

    setenv(VARIABLE, "libm.so.6", 1);
    assert_int_equal(dt_library_open(&library, "libnowhere.so.1", VARIABLE, &err), DT_OK);
    setenv(VARIABLE, "/", 1); /* a folder without the library */
    assert_int_equal(dt_library_open(&library, "libm.so.6", VARIABLE, &err), DT_ERR_UNSUPPORTED);
    assert_null(library);
    assert_non_null(strstr(err.message, VARIABLE));
    assert_non_null(strstr(err.message, "//libm.so.6"));
    dt_error_clear(&err);
    setenv(VARIABLE, "/nowhere/at/all.so", 1);
    assert_int_equal(dt_library_open(&library, "libm.so.6", VARIABLE, &err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/nowhere/at/all.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_the_variable_the_loader_looks),
        cmocka_unit_test(test_the_variable_names_a_library_or_its_folder_and_no_other_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
