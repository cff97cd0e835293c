/* cmocka: stands in for libcmocka where that is not installed.
 *
 * Purpose    the tests of the engine also run on a GPU machine on loan, where nobody may install
 *            packages. Never used where the library is found (cmake/libraries.cmake).
 * Same       names and meanings of cmocka 1.1 for what is declared here
 * Left out   mocks, checked memory, parameters of tests, other forms of output; a crash
 *            ends the program instead of failing its test
 * Threads    a test fails from the thread that it runs in
 */
#ifndef DT_BARE_CMOCKA_H
#define DT_BARE_CMOCKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state); /* 0: good */

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state; /* NULL: what the group's set-up left */
};

#define cmocka_unit_test(f) cmocka_unit_test_setup_teardown(f, NULL, NULL)
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    {                                                       \
#f, f, setup, teardown, NULL                        \
    }

/* Runs them in order; returns how many failed. `setup` and `teardown` are those of the whole. */
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                            CMFixtureFunction setup, CMFixtureFunction teardown);

/* Only tests whose names match, with * and ?. */
void cmocka_set_test_filter(const char *pattern);

void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define skip()        dt_cmocka_skip(__FILE__, __LINE__)
#define fail()        dt_cmocka_fail(__FILE__, __LINE__, "failed")
#define fail_msg(...) dt_cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)

#define assert_true(c)     dt_cmocka_check((c) ? true : false, #c, __FILE__, __LINE__)
#define assert_false(c)    dt_cmocka_check((c) ? false : true, "!(" #c ")", __FILE__, __LINE__)
#define assert_non_null(p) dt_cmocka_check((p) != NULL, #p " != NULL", __FILE__, __LINE__)
#define assert_null(p)     dt_cmocka_check((p) == NULL, #p " == NULL", __FILE__, __LINE__)
#define assert_ptr_equal(a, b) \
    dt_cmocka_check((const void *)(a) == (const void *)(b), #a " == " #b, __FILE__, __LINE__)

#define assert_int_equal(a, b) \
    dt_cmocka_integers((uintmax_t)(a), (uintmax_t)(b), true, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) \
    dt_cmocka_integers((uintmax_t)(a), (uintmax_t)(b), false, __FILE__, __LINE__)
#define assert_in_range(value, least, most) \
    dt_cmocka_range((uintmax_t)(value), (uintmax_t)(least), (uintmax_t)(most), __FILE__, __LINE__)
#define assert_float_equal(a, b, epsilon) \
    dt_cmocka_floats((float)(a), (float)(b), (float)(epsilon), __FILE__, __LINE__)
#define assert_string_equal(a, b)     dt_cmocka_strings((a), (b), true, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) dt_cmocka_strings((a), (b), false, __FILE__, __LINE__)
#define assert_memory_equal(a, b, bytes) \
    dt_cmocka_memory((a), (b), (bytes), true, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, bytes) \
    dt_cmocka_memory((a), (b), (bytes), false, __FILE__, __LINE__)

__attribute__((noreturn)) void dt_cmocka_skip(const char *file, int line);
__attribute__((noreturn, format(printf, 3, 4))) void dt_cmocka_fail(const char *file, int line,
                                                                    const char *format, ...);
void dt_cmocka_check(bool good, const char *what, const char *file, int line);
void dt_cmocka_integers(uintmax_t a, uintmax_t b, bool equal, const char *file, int line);
void dt_cmocka_range(uintmax_t value, uintmax_t least, uintmax_t most, const char *file, int line);
void dt_cmocka_floats(float a, float b, float epsilon, const char *file, int line);
void dt_cmocka_strings(const char *a, const char *b, bool equal, const char *file, int line);
void dt_cmocka_memory(const void *a, const void *b, size_t bytes, bool equal, const char *file,
                      int line);

#ifdef __cplusplus
}
#endif
#endif
