/* Pages, headers, malformed requests, and reading logs. */
#include "web_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "web/web_int.h"

static void test_pages_and_what_they_load_are_served_with_their_types(void **state)
{
    static const struct {
        const char *path, *type, *holds;
    } files[] = {
        {"/", "text/html", "data-page=\"list\""},
        {"/runs/aa", "text/html", "data-page=\"run\""},
        {"/app.css", "text/css", "prefers-color-scheme"},
        {"/app.js", "text/javascript", "showRun"},
        {"/list.js", "text/javascript", "showList"},
        {"/run.js", "text/javascript", "showRun"},
        {"/panels.js", "text/javascript", "Checkpoints"},
        {"/curves.js", "text/javascript", "Chart"},
        {"/live.js", "text/javascript", "poll"},
        {"/dom.js", "text/javascript", "textContent"},
        {"/text.js", "text/javascript", "duration"},
        {"/chart.js", "text/javascript", "Chart"},
        {"/icon.svg", "image/svg+xml", "<svg"},
        {"/healthz", "application/json", "\"ok\""},
    };
    test_web *web = *state;
    test_answer answer;

    test_answer_init(&answer);
    test_store_run(&web->rows, "aa", "n");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char type[96];

        test_web_get(web, &answer, files[i].path);
        assert_int_equal(answer.status, 200);
        snprintf(type, sizeof(type), "Content-Type: %s", files[i].type);
        assert_non_null(strstr(answer.head.data, type));
        assert_non_null(
            memmem(answer.body.data, answer.body.length, files[i].holds, strlen(files[i].holds)));
    }
    test_answer_release(&answer);
}

static void test_every_answer_carries_the_security_headers(void **state)
{
    static const char *const paths[] = {"/", "/api/v1/runs", "/nope", "/api/nope", "/app.js"};
    static const char *const wanted[] = {"default-src 'none'; script-src 'self'",
                                         "frame-ancestors 'none'",
                                         "X-Content-Type-Options: nosniff",
                                         "X-Frame-Options: DENY",
                                         "Referrer-Policy: no-referrer",
                                         "Cross-Origin-Resource-Policy: same-origin",
                                         "Cache-Control: no-store"};
    test_web *web = *state;
    test_answer answer;

    test_answer_init(&answer);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        test_web_get(web, &answer, paths[i]);
        for (size_t j = 0; j < sizeof(wanted) / sizeof(wanted[0]); j++)
            assert_non_null(strstr(answer.head.data, wanted[j]));
        assert_null(strstr(answer.head.data, "unsafe-inline"));
        assert_null(strstr(answer.head.data, "Access-Control-Allow"));
    }
    test_answer_release(&answer);
}

static void test_what_is_not_there_is_a_page_or_json(void **state)
{
    static const char *const pages[] = {"/nope",
                                        "/runs",
                                        "/runs/",
                                        "/runs/zz",
                                        "/runs/aa/",
                                        "/runs/aa/recipe",
                                        "//",
                                        "/index.html",
                                        "/runs/aa/../../store.db",
                                        "/../../../etc/passwd",
                                        "/%2e%2e/%2e%2e/etc/passwd",
                                        "/runs/..%2f..%2fstore.db",
                                        "/store.db",
                                        "/web/page/app.js",
                                        "/app.js/",
                                        "/app.css.map"};
    static const char *const api[] = {"/api/",
                                      "/api/v1",
                                      "/api/v1/",
                                      "/api/v2/runs",
                                      "/api/v1/runs/",
                                      "/api/v1/runs/aa/",
                                      "/api/v1/runs/aa/logs/",
                                      "/api/v1/runs/aa/../aa",
                                      "/api/v1/runs/zz"};
    test_web *web = *state;
    test_answer answer;

    test_answer_init(&answer);
    test_store_run(&web->rows, "aa", "n");
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        test_web_get(web, &answer, pages[i]);
        assert_int_equal(answer.status, 404);
        assert_non_null(strstr(answer.body.data, "Nothing here"));
        assert_null(strstr(answer.body.data, "root:"));
    }
    for (size_t i = 0; i < sizeof(api) / sizeof(api[0]); i++)
        json_decref(test_web_json(web, 404, api[i]));
    test_answer_release(&answer);
}

static void test_head_gives_the_same_headers_without_a_body(void **state)
{
    test_web *web = *state;
    test_answer get, head;
    char request[128], *length;

    test_answer_init(&get);
    test_answer_init(&head);
    snprintf(request, sizeof(request),
             "HEAD / HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n", web->port);
    test_web_send(web, &head, request, strlen(request));
    test_web_get(web, &get, "/");
    assert_int_equal(head.status, 200);
    assert_int_equal(head.body.length, 0);
    assert_true(get.body.length > 0);
    length = strstr(head.head.data, "Content-Length: ");
    assert_non_null(length);
    assert_int_equal(strtol(length + 16, NULL, 10), get.body.length);
    test_answer_release(&get);
    test_answer_release(&head);
}

/* None of them may get a page or end the server. */
static void test_malformed_and_huge_requests_are_refused(void **state)
{
    static const char *const odd[] = {
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\x01 a TLS hello",
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    };
    test_web *web = *state;
    test_answer answer;
    dt_strbuf huge;

    test_answer_init(&answer);
    dt_strbuf_init(&huge);
    web->patience_ms = 300; /* half a request gets no answer */
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        test_web_send(web, &answer, odd[i], strlen(odd[i]));
        assert_true(answer.status != 200);
    }
    for (int part = 0; part < 3; part++) { /* a long path, one long header, many headers */
        dt_strbuf_reset(&huge);
        dt_strbuf_add_fmt(&huge, "GET /%s", part == 0 ? "" : " HTTP/1.1\r\n");
        for (int i = 0; i < 100000; i++)
            dt_strbuf_add_str(&huge, part == 2 ? "A: b\r\n" : i == 0 && part == 1 ? "X: y" : "xy");
        dt_strbuf_add_str(&huge, part == 0 ? " HTTP/1.1\r\n\r\n" : "\r\n\r\n");
        test_web_send(web, &answer, huge.data, huge.length);
        assert_true(answer.status == 0 || (answer.status >= 400 && answer.status < 500));
    }
    web->patience_ms = 20000;
    json_decref(test_web_json(web, 200, "/healthz"));
    dt_strbuf_release(&huge);
    test_answer_release(&answer);
}

static void test_a_store_damaged_meanwhile_is_an_error_and_not_an_end(void **state)
{
    test_web *web = *state;
    json_t *answer;

    test_store_run(&web->rows, "aa", "n");
    test_store_run_sql(&web->rows, "DROP TABLE series");
    answer = test_web_json(web, 500, "/api/v1/runs/aa/metrics");
    assert_non_null(strstr(
        json_string_value(json_object_get(json_object_get(answer, "error"), "message")), "series"));
    json_decref(answer);
    json_decref(test_web_json(web, 200, "/healthz"));
}

/* Reads the whole tail, in parts of `bytes`. */
static dt_status read_tail(dt_strbuf *out, const char *path, int64_t lines, int64_t valid_bytes,
                           size_t bytes, dt_error *err)
{
    dt_web_log_tail tail;
    bool more = true;
    dt_status st;

    dt_strbuf_reset(out);
    st = dt_web_log_tail_open(&tail, path, lines, valid_bytes, err);
    while (st == DT_OK && more)
        st = dt_web_log_tail_next(&tail, out, bytes, &more, err);
    dt_web_log_tail_close(&tail);
    return st;
}

typedef struct tail_file {
    char path[64];
    dt_strbuf out;
    dt_error err;
} tail_file;

static void assert_tail(tail_file *f, const char *text, int64_t lines, int64_t valid_bytes,
                        const char *wanted)
{
    assert_int_equal(dt_file_write_atomic(f->path, text, strlen(text), 0600, &f->err), DT_OK);
    for (size_t bytes = 1; bytes < 100000; bytes *= 10) {
        assert_int_equal(read_tail(&f->out, f->path, lines, valid_bytes, bytes, &f->err), DT_OK);
        assert_string_equal(f->out.data, wanted);
    }
}

static void test_the_tail_is_whole_lines_from_the_end(void **state)
{
    tail_file f = {.path = "/tmp/dtrun-tail-XXXXXX", .err = DT_ERROR_INIT};
    dt_strbuf large;
    int fd = mkstemp(f.path);

    assert_true(fd >= 0);
    close(fd);
    dt_strbuf_init(&f.out);
    dt_strbuf_init(&large);
    assert_tail(&f, "", 5, 0, "");
    assert_tail(&f, "half", 5, 0, "");
    assert_tail(&f, "a\n", 5, 0, "a\n");
    assert_tail(&f, "a\nb\nc\n", 2, 0, "b\nc\n");
    assert_tail(&f, "a\nb\nc\nhalf", 2, 0, "b\nc\n");
    assert_tail(&f, "\n\n\n", 2, 0, "\n\n");
    assert_tail(&f, "a\nb\nc\n", 9, 4, "a\nb\n"); /* valid up to 4 bytes */
    assert_tail(&f, "a\nb\nc\n", 9, 99, "a\nb\nc\n");

    for (int i = 0; i < 200000; i++)
        dt_strbuf_add_fmt(&large, "line %d of many\n", i);
    assert_tail(&f, large.data, 1, 0, "line 199999 of many\n");
    assert_int_equal(read_tail(&f.out, f.path, 1000000, 0, 1000, &f.err), DT_OK);
    assert_true((int64_t)f.out.length <= DT_LOG_TAIL_BYTES);
    assert_memory_equal(f.out.data, "line ", 5); /* not an incomplete line */

    dt_strbuf_reset(&large); /* one line larger than a read */
    for (int i = 0; i < 200000; i++)
        dt_strbuf_add_str(&large, "0123456789");
    dt_strbuf_add_str(&large, "\nend\n");
    assert_tail(&f, large.data, 5, 0, "end\n");

    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(read_tail(&f.out, f.path, 5, 0, 1000, &f.err), DT_OK);
    assert_int_equal(f.out.length, 0);
    assert_int_equal(symlink("/etc/passwd", f.path), 0);
    assert_int_equal(read_tail(&f.out, f.path, 5, 0, 1000, &f.err), DT_ERR_IO);
    dt_error_clear(&f.err);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(mkfifo(f.path, 0600), 0);
    assert_int_equal(read_tail(&f.out, f.path, 5, 0, 1000, &f.err), DT_ERR_IO);
    assert_non_null(strstr(f.err.message, "not a file"));
    assert_int_equal(unlink(f.path), 0);
    dt_strbuf_release(&large);
    dt_strbuf_release(&f.out);
}

int main(void)
{
#define WITH_WEB(f) cmocka_unit_test_setup_teardown(f, test_web_setup, test_web_teardown)
    const struct CMUnitTest tests[] = {
        WITH_WEB(test_pages_and_what_they_load_are_served_with_their_types),
        WITH_WEB(test_every_answer_carries_the_security_headers),
        WITH_WEB(test_what_is_not_there_is_a_page_or_json),
        WITH_WEB(test_head_gives_the_same_headers_without_a_body),
        WITH_WEB(test_malformed_and_huge_requests_are_refused),
        WITH_WEB(test_a_store_damaged_meanwhile_is_an_error_and_not_an_end),
        cmocka_unit_test(test_the_tail_is_whole_lines_from_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
