/* Access: the rules by a table, the token file, then requests through a socket. */
#include "web_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "web/access.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define WRONG "0123456789abcdef0123456789abcdee"

static void test_only_who_knows_the_token_enters(void **state)
{
    static const struct {
        dt_web_access_request access;
        dt_web_entry wanted;
    } cases[] = {
        {{0}, DT_WEB_ANONYMOUS},
        {{.page = true}, DT_WEB_ANONYMOUS},
        {{.open = true}, DT_WEB_ENTER},
        {{.cookie = TOKEN}, DT_WEB_ENTER},
        {{.cookie = WRONG}, DT_WEB_ANONYMOUS},
        {{.cookie = ""}, DT_WEB_ANONYMOUS},
        {{.cookie = TOKEN "0"}, DT_WEB_ANONYMOUS},
        {{.authorization = "Bearer " TOKEN}, DT_WEB_ENTER},
        {{.authorization = "bearer " TOKEN}, DT_WEB_ENTER},
        {{.authorization = "Bearer " WRONG}, DT_WEB_WRONG_TOKEN},
        {{.authorization = "Bearer "}, DT_WEB_WRONG_TOKEN},
        {{.authorization = "Basic " TOKEN}, DT_WEB_WRONG_TOKEN},
        {{.authorization = TOKEN}, DT_WEB_WRONG_TOKEN},
        {{.authorization = "Bearer " WRONG, .cookie = TOKEN}, DT_WEB_ENTER},
        {{.link = TOKEN}, DT_WEB_ANONYMOUS}, /* not accepted in the address of other resources */
        {{.link = TOKEN, .page = true}, DT_WEB_SET_COOKIE},
        {{.link = WRONG, .page = true}, DT_WEB_WRONG_TOKEN},
        {{.link = "", .page = true}, DT_WEB_WRONG_TOKEN},
        {{.link = WRONG, .page = true, .cookie = TOKEN}, DT_WEB_SET_COOKIE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(dt_web_entry_of(&cases[i].access, TOKEN), cases[i].wanted);
        assert_int_equal(dt_web_entry_of(&cases[i].access, NULL), DT_WEB_ENTER);
    }
}

static void get(dt_web_token *token, const char *folder, bool renew)
{
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(dt_web_token_get(token, folder, DT_WEB_TOKEN_FILE, renew, &err), DT_OK);
    assert_int_equal(strlen(token->text), DT_WEB_TOKEN_DIGITS);
}

static void test_the_token_stays_unless_others_may_have_read_it(void **state)
{
    static const mode_t loose[] = {0644, 0640, 0604, 0660};
    char folder[] = "/tmp/dtrun-token-XXXXXX", path[128], other[128];
    dt_web_token first, again;
    dt_error err = DT_ERROR_INIT;
    struct stat info;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%s", folder, DT_WEB_TOKEN_FILE);
    get(&first, folder, false);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    get(&again, folder, false);
    assert_string_equal(first.text, again.text);
    get(&again, folder, true);
    assert_string_not_equal(first.text, again.text);
    for (size_t i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
        get(&first, folder, false);
        assert_int_equal(chmod(path, loose[i]), 0);
        get(&again, folder, false);
        assert_string_not_equal(first.text, again.text);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    assert_int_equal(dt_file_write_atomic(path, "short", 5, 0600, &err), DT_OK);
    get(&first, folder, false);
    snprintf(other, sizeof(other), "%s/other", folder);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0); /* a link is not followed but replaced */
    get(&again, folder, false);
    assert_string_not_equal(first.text, again.text);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(dt_file_remove_tree(folder, NULL), DT_OK);
    assert_int_equal(dt_web_token_get(&first, folder, DT_WEB_TOKEN_FILE, false, &err), DT_ERR_IO);
}

static int ask(test_web *web, test_answer *answer, const char *path, const char *header)
{
    dt_strbuf request;

    dt_strbuf_init(&request);
    dt_strbuf_add_fmt(&request,
                      "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sConnection: close\r\n\r\n", path,
                      web->port, header);
    test_web_send(web, answer, request.data, request.length);
    dt_strbuf_release(&request);
    return answer->status;
}

static void test_without_the_token_nothing_of_a_run_is_shown(void **state)
{
    static const char *const paths[] = {"/",
                                        "/runs/aa",
                                        "/runs/nope",
                                        "/nope",
                                        "/api/v1/runs",
                                        "/api/v1/runs/aa",
                                        "/api/v1/runs/nope",
                                        "/api/v1/runs/aa/metrics",
                                        "/api/v1/runs/aa/logs",
                                        "/api/v1/runs/aa/events",
                                        "/api/v1/runs/aa/recipe",
                                        "/api/v1/runs/aa/checkpoints",
                                        "/api/v1/runs?token=" TOKEN,
                                        "/api/nope",
                                        "/metrics"};
    static const char *const open[] = {"/healthz", "/app.css", "/app.js", "/icon.svg", "/chart.js"};
    test_web *web = *state;
    test_answer answer;
    char cookie[96];

    test_answer_init(&answer);
    test_store_run(&web->rows, "aa", "secretname");
    snprintf(cookie, sizeof(cookie), "Cookie: other=x; dtrun-%d=" TOKEN "\r\n", web->port);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(ask(web, &answer, paths[i], ""), 401);
        assert_non_null(strstr(answer.head.data, "WWW-Authenticate: Bearer"));
        assert_non_null(strstr(answer.body.data, "serve --link")); /* names the remedy */
        assert_null(strstr(answer.body.data, "secretname"));
        assert_int_equal(ask(web, &answer, paths[i], "Authorization: Bearer " WRONG "\r\n"), 403);
        assert_int_not_equal(ask(web, &answer, paths[i], cookie) / 100, 3);
        assert_true(answer.status == 200 || answer.status == 404);
        assert_int_not_equal(ask(web, &answer, paths[i], "Authorization: Bearer " TOKEN "\r\n"),
                             401);
    }
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        assert_int_equal(ask(web, &answer, open[i], ""), 200);
    snprintf(cookie, sizeof(cookie), "Cookie: dtrun-%d=" TOKEN "\r\n", web->port + 1);
    assert_int_equal(ask(web, &answer, "/", cookie), 401); /* the cookie of another server */
    test_answer_release(&answer);
}

static void test_a_link_becomes_a_cookie_and_leads_nowhere_else(void **state)
{
    static const struct {
        const char *path, *location;
    } links[] = {
        {"/?token=" TOKEN, "Location: /\r\n"},
        {"/runs/aa?token=" TOKEN, "Location: /runs/aa\r\n"},
        {"/runs/aa?x=y&token=" TOKEN, "Location: /runs/aa?x=y\r\n"},
        {"/compare?runs=a,b&token=" TOKEN "&smooth=0.9&bare",
         "Location: /compare?runs=a,b&smooth=0.9&bare\r\n"},
        {"/compare?a=%0d%0aSet-Cookie:x&token=" TOKEN,
         "Location: /compare?a=%0D%0ASet-Cookie%3Ax\r\n"},
        {"//evil.example/?token=" TOKEN, "Location: /\r\n"},
        {"/runs/%0d%0aSet-Cookie:x?token=" TOKEN, "Location: /\r\n"},
        {"/runs/..%2f..%2f?token=" TOKEN, "Location: /\r\n"},
        {"/nope?token=" TOKEN, "Location: /\r\n"},
    };
    test_web *web = *state;
    test_answer answer;
    char cookie[160];

    test_answer_init(&answer);
    snprintf(cookie, sizeof(cookie),
             "Set-Cookie: dtrun-%d=" TOKEN "; Path=/; Max-Age=31536000; HttpOnly; "
             "SameSite=Strict\r\n",
             web->port);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        assert_int_equal(ask(web, &answer, links[i].path, ""), 303);
        assert_non_null(strstr(answer.head.data, links[i].location));
        assert_non_null(strstr(answer.head.data, cookie));
        assert_non_null(strstr(answer.head.data, "Referrer-Policy: no-referrer"));
        assert_null(strstr(answer.body.data, TOKEN));
    }
    assert_int_equal(ask(web, &answer, "/?token=" WRONG, ""), 403);
    assert_null(strstr(answer.head.data, "Set-Cookie"));
    assert_int_equal(ask(web, &answer, "/?token=", ""), 403);
    assert_int_equal(ask(web, &answer, "/?token", ""), 401);
    test_answer_release(&answer);
}

int main(void)
{
#define LOCKED(f) cmocka_unit_test_setup_teardown(f, test_web_setup_locked, test_web_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_who_knows_the_token_enters),
        cmocka_unit_test(test_the_token_stays_unless_others_may_have_read_it),
        LOCKED(test_without_the_token_nothing_of_a_run_is_shown),
        LOCKED(test_a_link_becomes_a_cookie_and_leads_nowhere_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
