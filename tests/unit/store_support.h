/* store_support: opens a store in its own folder, and adds rows that the tests of store/ share. */
#ifndef DT_TESTS_STORE_SUPPORT_H
#define DT_TESTS_STORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"

typedef struct test_store {
    char folder[64]; /* removed at the end */
    char path[96];
    dt_store *store;
    dt_arena arena;
    dt_error err;
} test_store;

/* cmocka's setup and teardown; *state is a test_store with an open, empty store. */
int test_store_setup(void **state);
int test_store_teardown(void **state);

/* Fails the test with the error's message. */
#define assert_good(t, expression) \
    assert_good_at((t), (expression), #expression, __FILE__, __LINE__)
void assert_good_at(test_store *t, dt_status st, const char *what, const char *file, int line);

/* Checks the status, and that the message contains `words`; clears the error. */
#define assert_fails(t, expression, code, words) \
    assert_fails_at((t), (expression), (code), (words), __FILE__, __LINE__)
void assert_fails_at(test_store *t, dt_status st, dt_status code, const char *words,
                     const char *file, int line);

/* Adds a run of 100 steps in state queued. */
void test_store_run(test_store *t, const char *id, const char *name);
void test_store_reopen(test_store *t);

/* Returns the first number of a statement, run on a separate connection. */
int64_t test_store_number(test_store *t, const char *sql);
/* Runs statements on a separate connection. */
void test_store_run_sql(test_store *t, const char *sql);

#endif
