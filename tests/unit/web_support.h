/* web_support: a real server in a thread of the test, on a free port, and a client that sends
 * bytes as they are.
 */
#ifndef DT_TESTS_WEB_SUPPORT_H
#define DT_TESTS_WEB_SUPPORT_H

#include "base/json.h"
#include "store_support.h"

typedef struct test_web {
    test_store rows; /* what is served; the tests write to it */
    int port;
    const char *token; /* of the server; NULL: none */
    int patience_ms;   /* for an answer; after that the client hangs up, as if nothing came */
} test_web;

/* The status of one answer; head and body are kept until the next call. */
typedef struct test_answer {
    int status;
    dt_strbuf head, body;
} test_answer;

int test_web_setup(void **state);
int test_web_setup_locked(void **state); /* with a token */
int test_web_teardown(void **state);

/* Sends `request` as it is and reads to the end of the connection; status 0 where nothing came. */
void test_web_send(const test_web *web, test_answer *answer, const char *request, size_t length);

/* GET with a good Host. */
void test_web_get(const test_web *web, test_answer *answer, const char *path);

/* GET, of which the answer must be this status and JSON; new reference. */
json_t *test_web_json(const test_web *web, int status, const char *path);

void test_answer_init(test_answer *answer);
void test_answer_release(test_answer *answer);

#endif
