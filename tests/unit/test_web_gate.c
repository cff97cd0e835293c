/* Requests that are refused before any page is called: by the rules alone, then through a socket. */
#include "web_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "web/access.h"
#include "web/listen.h"
#include "web/server.h"

static int gate(const char *method, const char *host, const char *origin)
{
    const char *reason = NULL;
    int status = dt_web_gate(method, host, origin, 8642, "127.0.0.1", &reason);

    assert_true((status == 0) == (reason == NULL));
    return status;
}

static void test_only_get_and_head_pass(void **state)
{
    const char *others[] = {"POST",    "PUT",   "DELETE", "PATCH", "OPTIONS",
                            "CONNECT", "TRACE", "get",    ""};

    assert_int_equal(gate("GET", "localhost:8642", NULL), 0);
    assert_int_equal(gate("HEAD", "localhost:8642", NULL), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(gate(others[i], "localhost:8642", NULL), 405);
}

static void test_only_hosts_that_name_this_machine_and_port_pass(void **state)
{
    const char *good[] = {"localhost:8642", "LocalHost:8642", "127.0.0.1:8642", "[::1]:8642"};
    const char *bad[] = {"",
                         "localhost",
                         "localhost:80",
                         "localhost:86420",
                         "localhost:8642 ",
                         "evil.example:8642",
                         "localhost.evil.example:8642",
                         "evil.example",
                         "127.0.0.1.nip.io:8642",
                         "127.0.0.2:8642",
                         "0.0.0.0:8642",
                         "::1:8642",
                         "localhost:8642@evil.example",
                         "user@localhost:8642"};
    const char *reason;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(gate("GET", good[i], NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(gate("GET", bad[i], NULL), 403);
    assert_int_equal(gate("GET", NULL, NULL), 403);
    assert_int_equal(dt_web_gate("GET", "localhost", NULL, 80, "127.0.0.1", &reason), 0);
    assert_int_equal(dt_web_gate("GET", "127.0.0.2:1", NULL, 1, "127.0.0.2", &reason), 0);
}

static void test_pages_of_other_sites_do_not_pass(void **state)
{
    const char *bad[] = {"http://evil.example",
                         "https://localhost:8642",
                         "null",
                         "",
                         "http://localhost:1",
                         "http://localhost:8642.evil.example"};

    assert_int_equal(gate("GET", "localhost:8642", "http://localhost:8642"), 0);
    assert_int_equal(gate("GET", "localhost:8642", "http://127.0.0.1:8642"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(gate("GET", "localhost:8642", bad[i]), 403);
}

static int gate_unix(const char *host, const char *origin)
{
    const char *reason;

    return dt_web_gate("GET", host, origin, 0, "", &reason);
}

static void test_at_a_unix_socket_any_port_of_this_machine_passes(void **state)
{
    const char *good[] = {"localhost", "localhost:8642", "127.0.0.1:1", "[::1]", "[::1]:80"};
    const char *bad[] = {"",           "evil.example", "localhost.evil",
                         "localhost:", "localhost:x",  "localhost:80@e",
                         "127.0.0.11", "[::1]x"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(gate_unix(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(gate_unix(bad[i], NULL), 403);
    assert_int_equal(gate_unix("localhost:8642", "http://localhost:8642"), 0);
    assert_int_equal(gate_unix("localhost:8642", "http://localhost:1"), 403); /* another site */
    assert_int_equal(gate_unix("localhost:8642", "null"), 403);
}

static void test_a_unix_socket_is_private_and_removed_on_close(void **state)
{
    char folder[] = "/tmp/dtrun-listen-XXXXXX", text[160], file[128];
    dt_web_listener one, two;
    dt_error err = DT_ERROR_INIT;
    struct stat info;

    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    assert_int_equal(dt_web_listen(&one, text, &err), DT_OK);
    assert_int_equal(lstat(text + 5, &info), 0);
    assert_true(S_ISSOCK(info.st_mode) && (info.st_mode & 0777) == 0600);
    assert_int_equal(dt_web_listen(&two, text, &err), DT_ERR_BUSY);
    dt_error_clear(&err);
    close(one.fd); /* as if it was killed: the next one replaces it */
    assert_int_equal(dt_web_listen(&two, text, &err), DT_OK);
    dt_web_listener_close(&two);
    assert_int_equal(lstat(text + 5, &info), -1);

    snprintf(file, sizeof(file), "%s/file", folder);
    assert_int_equal(dt_file_write_atomic(file, "x", 1, 0600, &err), DT_OK);
    snprintf(text, sizeof(text), "unix:%s", file);
    assert_int_equal(dt_web_listen(&one, text, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "it exists and is not a socket"));
    assert_true(dt_file_exists(file));
    dt_error_clear(&err);
    assert_int_equal(dt_web_listen(&one, "unix:", &err), DT_ERR_USAGE);
    dt_error_clear(&err);
    snprintf(text, sizeof(text), "unix:%s/gone/s", folder);
    assert_int_equal(dt_web_listen(&one, text, &err), DT_ERR_IO);
    assert_int_equal(dt_file_remove_tree(folder, NULL), DT_OK);
}

static void test_only_this_machines_addresses_are_listened_on(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"0.0.0.0:8642", "only this machine's own addresses"},
        {"192.168.1.2:8642", "only this machine's own addresses"},
        {"example.org:80", "only this machine's own addresses"},
        {"[::]:8642", "only this machine's own addresses"},
        {"8642", "expected an address and a port"},
        {"", "expected an address and a port"},
        {"127.0.0.1:", "is not a port"},
        {"127.0.0.1:x", "is not a port"},
        {"127.0.0.1:65536", "is not a port"},
        {"127.0.0.1:-1", "is not a port"},
        {"127.0.0.1: 80", "is not a port"},
        {"127.0.0.1:99999999999999999999", "is not a port"},
    };
    dt_web_listener one, two;
    dt_error err = DT_ERROR_INIT;
    char text[64];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dt_web_listen(&one, bad[i].text, &err), DT_ERR_USAGE);
        assert_non_null(strstr(err.message, bad[i].words));
        assert_int_equal(one.fd, -1);
        dt_error_clear(&err);
    }
    assert_int_equal(dt_web_listen(&one, "localhost:0", &err), DT_OK);
    assert_true(one.port > 0);
    assert_string_equal(one.address, "127.0.0.1");
    snprintf(text, sizeof(text), "127.0.0.1:%d", one.port);
    assert_int_equal(dt_web_listen(&two, text, &err), DT_ERR_BUSY);
    assert_non_null(strstr(err.message, "the port is taken"));
    close(one.fd);
}

static void ask(test_web *web, test_answer *answer, const char *method, const char *headers)
{
    dt_strbuf request;

    dt_strbuf_init(&request);
    dt_strbuf_add_fmt(&request, "%s /api/v1/runs HTTP/1.1\r\n%sConnection: close\r\n\r\n", method,
                      headers);
    test_web_send(web, answer, request.data, request.length);
    dt_strbuf_release(&request);
}

static void test_the_gate_comes_before_the_routes(void **state)
{
    test_web *web = *state;
    char headers[256];
    test_answer answer;

    test_answer_init(&answer);
    ask(web, &answer, "GET", "Host: evil.example\r\n");
    assert_int_equal(answer.status, 403);
    assert_non_null(strstr(answer.body.data, "\"error\""));
    assert_non_null(strstr(answer.body.data, "the Host header"));

    snprintf(headers, sizeof(headers), "Host: localhost:%d\r\nHost: evil.example\r\n", web->port);
    ask(web, &answer, "GET", headers);
    assert_true(answer.status == 403 || answer.status == 400);

    snprintf(headers, sizeof(headers), "Host: localhost:%d\r\nOrigin: http://evil.example\r\n",
             web->port);
    ask(web, &answer, "GET", headers);
    assert_int_equal(answer.status, 403);

    snprintf(headers, sizeof(headers), "Host: localhost:%d\r\nContent-Length: 4\r\n", web->port);
    ask(web, &answer, "DELETE", headers);
    assert_int_equal(answer.status, 405); /* without waiting for a body that never comes */
    snprintf(headers, sizeof(headers), "Host: localhost:%d\r\n", web->port);
    ask(web, &answer, "POST", headers);
    assert_int_equal(answer.status, 405);
    assert_non_null(strstr(answer.head.data, "Allow: GET, HEAD"));
    ask(web, &answer, "GET", headers);
    assert_int_equal(answer.status, 200);
    test_answer_release(&answer);
}

static void add_times(dt_strbuf *out, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        dt_strbuf_add_str(out, text);
}

/* Returns the status of a GET with this target, and these headers in addition to Host. */
static int status_of(test_web *web, const char *target, const char *headers, size_t headers_bytes)
{
    test_answer answer;
    dt_strbuf request;
    int status;

    test_answer_init(&answer);
    dt_strbuf_init(&request);
    dt_strbuf_add_fmt(&request, "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n",
                      target, web->port);
    dt_strbuf_add(&request, headers, headers_bytes);
    dt_strbuf_add_str(&request, "\r\n");
    test_web_send(web, &answer, request.data, request.length);
    status = answer.status;
    dt_strbuf_release(&request);
    test_answer_release(&answer);
    return status;
}

static void test_malformed_headers_are_refused(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        int status;
        const char *headers;
        size_t bytes;
    } cases[] = {
        {200, BYTES("")},
        {200, BYTES("Content-Length: 0\r\n")},
        {200, BYTES("Accept: a\r\nAccept: b\r\nX-!#$%&'*+-.^_`|~1: y\r\n")},
        {400, BYTES("Content-Length: 0\r\nContent-Length: 5\r\n")},
        {400, BYTES("Content-Length: 0\r\nContent-Length: 0\r\n")},
        {400, BYTES("Content-Length: 5\r\n")},
        {400, BYTES("Content-Length: 00\r\n")},
        {400, BYTES("Transfer-Encoding: chunked\r\n")},
        {400, BYTES("Transfer-Encoding: xchunked\r\n")},
        {400, BYTES("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")},
        {400, BYTES("Host: evil.example\r\n")},
        {400, BYTES("Cookie: a=1\r\nCookie: b=2\r\n")},
        {400, BYTES("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")},
        {400, BYTES("X-Name : value\r\n")},
        {400, BYTES("X-Name\t: value\r\n")},
        {400, BYTES("X Name: value\r\n")},
        {400, BYTES("no colon\r\n")},
        {400, BYTES("X-Name: a\rHost: b\r\n")},
    };
    test_web *web = *state;
    char origins[128];
    int length;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = status_of(web, "/healthz", cases[i].headers, cases[i].bytes);

        if (status != cases[i].status)
            fail_msg("'%s' is answered with %d, expected %d", cases[i].headers, status,
                     cases[i].status);
    }
    length = snprintf(origins, sizeof(origins),
                      "Origin: http://localhost:%d\r\nOrigin: http://evil.example\r\n", web->port);
    assert_int_equal(status_of(web, "/healthz", origins, (size_t)length), 400);
}

static void test_malformed_addresses_are_refused(void **state)
{
    static const char *const bad[] = {
        "/healthz?a=b%00c", "/api/v1/runs/last%00x", "/%00", "/a b", "/a\tb", "/a\x7f"};
    static const char line[] = "GET /healthz\0x HTTP/1.1\r\n";
    test_web *web = *state;
    test_answer answer;
    dt_strbuf uri;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(status_of(web, bad[i], "", 0), 400);
    test_answer_init(&answer);
    dt_strbuf_init(&uri);
    dt_strbuf_add(&uri, line, sizeof(line) - 1);
    dt_strbuf_add_fmt(&uri, "Host: localhost:%d\r\nConnection: close\r\n\r\n", web->port);
    test_web_send(web, &answer, uri.data, uri.length);
    assert_int_equal(answer.status, 400);
    test_answer_release(&answer);
    dt_strbuf_reset(&uri);
    dt_strbuf_add_str(&uri, "/healthz?a");
    add_times(&uri, "&a=1", DT_WEB_ARGUMENTS_MAX - 1);
    assert_int_equal(status_of(web, uri.data, "", 0), 200);
    add_times(&uri, "&", 1);
    assert_int_equal(status_of(web, uri.data, "", 0), 414);
    add_times(&uri, "&", 10000);
    assert_int_equal(status_of(web, uri.data, "", 0), 414);
    dt_strbuf_reset(&uri);
    dt_strbuf_add_str(&uri, "/healthz?");
    add_times(&uri, "a", 40000);
    assert_int_equal(status_of(web, uri.data, "", 0), 414);
    add_times(&uri, "a", 200000);
    assert_int_equal(status_of(web, uri.data, "", 0), 414);
    dt_strbuf_reset(&uri);
    add_times(&uri, "X-Name: 1\r\n", 20000);
    assert_int_equal(status_of(web, "/healthz", uri.data, uri.length), 431);
    dt_strbuf_release(&uri);
}

static void test_a_second_server_reports_that_the_port_is_taken(void **state)
{
    test_web *web = *state;
    dt_error err = DT_ERROR_INIT;
    char listen[64];
    dt_web_options options = {.listen = listen, .store_path = web->rows.path, .stop_fd = -1};

    snprintf(listen, sizeof(listen), "127.0.0.1:%d", web->port);
    assert_int_equal(dt_web_serve(&options, &err), DT_ERR_BUSY);
    assert_non_null(strstr(err.message, "the port is taken"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_get_and_head_pass),
        cmocka_unit_test(test_only_hosts_that_name_this_machine_and_port_pass),
        cmocka_unit_test(test_pages_of_other_sites_do_not_pass),
        cmocka_unit_test(test_at_a_unix_socket_any_port_of_this_machine_passes),
        cmocka_unit_test(test_a_unix_socket_is_private_and_removed_on_close),
        cmocka_unit_test(test_only_this_machines_addresses_are_listened_on),
        cmocka_unit_test_setup_teardown(test_the_gate_comes_before_the_routes, test_web_setup,
                                        test_web_teardown),
        cmocka_unit_test_setup_teardown(test_malformed_headers_are_refused, test_web_setup,
                                        test_web_teardown),
        cmocka_unit_test_setup_teardown(test_malformed_addresses_are_refused, test_web_setup,
                                        test_web_teardown),
        cmocka_unit_test_setup_teardown(test_a_second_server_reports_that_the_port_is_taken,
                                        test_web_setup, test_web_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
