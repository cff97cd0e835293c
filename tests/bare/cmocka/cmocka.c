#include "tests/bare/cmocka/cmocka.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum outcome { GOOD, FAILED, SKIPPED };

static jmp_buf back; /* into the runner, from an assertion */
static bool inside;  /* something runs that may go back there */
static enum outcome outcome_of_it;

void print_message(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout); /* tests fork */
}

void print_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

__attribute__((noreturn)) static void leave(enum outcome outcome)
{
    outcome_of_it = outcome;
    if (inside)
        longjmp(back, 1);
    exit(1);
}

void dt_cmocka_skip(const char *file, int line)
{
    print_message("%s:%d: skipped\n", file, line);
    leave(SKIPPED);
}

void dt_cmocka_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    leave(FAILED);
}

void dt_cmocka_check(bool good, const char *what, const char *file, int line)
{
    if (!good)
        dt_cmocka_fail(file, line, "%s", what);
}

void dt_cmocka_integers(uintmax_t a, uintmax_t b, bool equal, const char *file, int line)
{
    if ((a == b) != equal)
        dt_cmocka_fail(file, line, "%" PRIdMAX " %s %" PRIdMAX, (intmax_t)a,
                       equal ? "!=" : "==", (intmax_t)b);
}

void dt_cmocka_range(uintmax_t value, uintmax_t least, uintmax_t most, const char *file, int line)
{
    if (value < least || value > most)
        dt_cmocka_fail(file, line, "%" PRIuMAX " is not within %" PRIuMAX " to %" PRIuMAX, value,
                       least, most);
}

void dt_cmocka_floats(float a, float b, float epsilon, const char *file, int line)
{
    if (!(fabsf(a - b) <= epsilon))
        dt_cmocka_fail(file, line, "%g and %g are %g apart, over %g", a, b, fabsf(a - b), epsilon);
}

void dt_cmocka_strings(const char *a, const char *b, bool equal, const char *file, int line)
{
    if ((strcmp(a, b) == 0) != equal)
        dt_cmocka_fail(file, line, "\"%s\" %s \"%s\"", a, equal ? "!=" : "==", b);
}

void dt_cmocka_memory(const void *a, const void *b, size_t bytes, bool equal, const char *file,
                      int line)
{
    const unsigned char *x = a, *y = b;
    size_t at = 0;

    while (at < bytes && x[at] == y[at])
        at++;
    if (equal && at < bytes)
        dt_cmocka_fail(file, line, "byte %zu of %zu: 0x%02x != 0x%02x", at, bytes, x[at], y[at]);
    if (!equal && at == bytes)
        dt_cmocka_fail(file, line, "%zu bytes are the same", bytes);
}

/* A test or a fixture; neither is good. */
static enum outcome run(CMUnitTestFunction test, CMFixtureFunction fixture, void **state)
{
    outcome_of_it = GOOD;
    inside = true;
    if (setjmp(back) == 0) {
        if (test != NULL)
            test(state);
        else if (fixture != NULL && fixture(state) != 0)
            outcome_of_it = FAILED;
    }
    inside = false;
    return outcome_of_it;
}

static enum outcome run_test(const struct CMUnitTest *test, void *state)
{
    enum outcome outcome;

    if (test->initial_state != NULL)
        state = test->initial_state;
    outcome = run(NULL, test->setup_func, &state);
    if (outcome != GOOD)
        return outcome;
    outcome = run(test->test_func, NULL, &state);
    return run(NULL, test->teardown_func, &state) == GOOD ? outcome : FAILED;
}

static const char *filter; /* NULL: all */

void cmocka_set_test_filter(const char *pattern)
{
    filter = pattern;
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                            CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static const char *const words[] = {"OK", "FAILED", "SKIPPED"};
    void *state = NULL;
    int failed = 0;

    if (run(NULL, setup, &state) != GOOD) {
        print_error("%s: the set-up of the group failed\n", name);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        enum outcome outcome;

        if (filter != NULL && fnmatch(filter, tests[i].name, 0) != 0)
            continue;
        print_message("[ RUN      ] %s\n", tests[i].name);
        outcome = run_test(&tests[i], state);
        print_message("[ %8s ] %s\n", words[outcome], tests[i].name);
        failed += outcome == FAILED;
    }
    if (run(NULL, teardown, &state) != GOOD) {
        print_error("%s: the tear-down of the group failed\n", name);
        failed++;
    }
    print_message("%s: %zu tests, %d failed\n", name, count, failed);
    return failed;
}
