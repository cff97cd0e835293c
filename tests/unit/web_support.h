/* web_support: runs a real server in a thread of the test, on a free port, and a client that
 * sends bytes unchanged. */
#ifndef DT_TESTS_WEB_SUPPORT_H
#define DT_TESTS_WEB_SUPPORT_H

#include "base/json.h"
#include "store_support.h"

typedef struct test_web {
    test_store rows; /* the served store, which tests write */
    int port;
    const char *token; /* of the server; NULL: not required */
    int patience_ms;   /* time limit for an answer; then the client disconnects */
} test_web;

/* One answer; head and body are kept until the next call. */
typedef struct test_answer {
    int status;
    dt_strbuf head, body;
} test_answer;

int test_web_setup(void **state);
int test_web_setup_locked(void **state); /* with a token */
int test_web_teardown(void **state);

/* Sends `request` unchanged, and reads until the end of the connection; status 0: no answer. */
void test_web_send(const test_web *web, test_answer *answer, const char *request, size_t length);

/* Sends a GET with a valid Host. */
void test_web_get(const test_web *web, test_answer *answer, const char *path);

/* Sends a GET, whose answer must have this status and be JSON; new reference. */
json_t *test_web_json(const test_web *web, int status, const char *path);

void test_answer_init(test_answer *answer);
void test_answer_release(test_answer *answer);

#endif
