/* What is refused, before any page is asked: rules alone, then through a socket. */
#define _GNU_SOURCE
#include "web_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "web/gate.h"
#include "web/listen.h"
#include "web/server.h"

#include "base/banned.h"

static int gate(const char *method, const char *host, const char *origin)
{
    const char *reason = NULL;
    int status =
        dt_web_gate(method, host, host != NULL ? 1 : 0, origin, 8642, "127.0.0.1", &reason);

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
    assert_int_equal(dt_web_gate("GET", "localhost:8642", 2, NULL, 8642, "127.0.0.1", &reason),
                     403);
    assert_int_equal(dt_web_gate("GET", "localhost", 1, NULL, 80, "127.0.0.1", &reason), 0);
    assert_int_equal(dt_web_gate("GET", "127.0.0.2:1", 1, NULL, 1, "127.0.0.2", &reason), 0);
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

    return dt_web_gate("GET", host, 1, origin, 0, "", &reason);
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

static void test_a_unix_socket_is_ours_alone_and_goes_when_it_is_closed(void **state)
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
    close(one.fd); /* as if it was killed: the next one takes its place */
    assert_int_equal(dt_web_listen(&two, text, &err), DT_OK);
    dt_web_listener_close(&two);
    assert_int_equal(lstat(text + 5, &info), -1);

    snprintf(file, sizeof(file), "%s/file", folder);
    assert_int_equal(dt_file_write_atomic(file, "x", 1, 0600, &err), DT_OK);
    snprintf(text, sizeof(text), "unix:%s", file);
    assert_int_equal(dt_web_listen(&one, text, &err), DT_ERR_USAGE);
    assert_non_null(strstr(err.message, "something else is there"));
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

static void test_the_gate_stands_before_the_routes(void **state)
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

static void test_a_second_server_says_that_the_port_is_taken(void **state)
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
        cmocka_unit_test(test_a_unix_socket_is_ours_alone_and_goes_when_it_is_closed),
        cmocka_unit_test(test_only_this_machines_addresses_are_listened_on),
        cmocka_unit_test_setup_teardown(test_the_gate_stands_before_the_routes, test_web_setup,
                                        test_web_teardown),
        cmocka_unit_test_setup_teardown(test_a_second_server_says_that_the_port_is_taken,
                                        test_web_setup, test_web_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
