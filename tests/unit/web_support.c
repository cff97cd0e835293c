#include "web_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "web/server.h"

typedef struct running {
    test_web web; /* first: the state that tests get */
    pthread_t thread;
    int stop[2], ready[2];
    dt_status ended;
    dt_error err;
} running;

static void note_url(void *context, const char *url)
{
    running *r = context;
    const char *colon = strrchr(url, ':');

    r->web.port = (int)strtol(colon + 1, NULL, 10);
    if (write(r->ready[1], "r", 1) != 1)
        abort();
}

static void *serve(void *context)
{
    running *r = context;
    dt_web_options options = {.listen = "127.0.0.1:0",
                              .store_path = r->web.rows.path,
                              .token = r->web.token,
                              .stop_fd = r->stop[0],
                              .listening = note_url,
                              .context = r};

    r->ended = dt_web_serve(&options, &r->err);
    close(r->ready[1]);
    return NULL;
}

static int set_up(void **state, const char *token)
{
    running *r = calloc(1, sizeof(*r));
    test_store *rows = &r->web.rows;
    char byte;

    *state = r;
    r->web.patience_ms = 20000;
    r->web.token = token;
    snprintf(rows->folder, sizeof(rows->folder), "/tmp/dtrun-web-XXXXXX");
    if (mkdtemp(rows->folder) == NULL)
        return -1;
    snprintf(rows->path, sizeof(rows->path), "%s/store.db", rows->folder);
    dt_arena_init(&rows->arena, 0);
    if (dt_store_open(&rows->store, rows->path, &rows->err) != DT_OK || pipe(r->stop) != 0 ||
        pipe(r->ready) != 0 || pthread_create(&r->thread, NULL, serve, r) != 0)
        return -1;
    return read(r->ready[0], &byte, 1) == 1 ? 0 : -1;
}

int test_web_setup(void **state)
{
    return set_up(state, NULL);
}

int test_web_setup_locked(void **state)
{
    return set_up(state, "0123456789abcdef0123456789abcdef");
}

int test_web_teardown(void **state)
{
    running *r = *state;
    int good;

    close(r->stop[1]); /* a hang-up ends the server */
    pthread_join(r->thread, NULL);
    good = r->ended == DT_OK;
    if (!good)
        print_error("server: %s\n", r->err.message);
    close(r->stop[0]);
    close(r->ready[0]);
    dt_store_close(r->web.rows.store);
    dt_arena_release(&r->web.rows.arena);
    dt_file_remove_tree(r->web.rows.folder, NULL);
    free(r);
    return good ? 0 : -1;
}

void test_answer_init(test_answer *answer)
{
    answer->status = 0;
    dt_strbuf_init(&answer->head);
    dt_strbuf_init(&answer->body);
}

void test_answer_release(test_answer *answer)
{
    dt_strbuf_release(&answer->head);
    dt_strbuf_release(&answer->body);
}

/* Decodes a chunked body; the empty last chunk shows that it is complete. */
static void unchunk(dt_strbuf *body)
{
    dt_strbuf whole;
    char *at = body->data, *end;
    size_t size = 1;

    dt_strbuf_init(&whole);
    while (size > 0) {
        size = strtoul(at, &end, 16);
        assert_true(end > at && strncmp(end, "\r\n", 2) == 0);
        at = end + 2;
        assert_true(size + 2 <= (size_t)(body->data + body->length - at));
        dt_strbuf_add(&whole, at, size);
        at += size + 2;
    }
    dt_strbuf_release(body);
    *body = whole;
}

void test_web_send(const test_web *web, test_answer *answer, const char *request, size_t length)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)web->port)};
    struct timeval patience = {.tv_sec = web->patience_ms / 1000,
                               .tv_usec = web->patience_ms % 1000 * 1000};
    char chunk[4096];
    const char *end;
    ssize_t got;
    int fd;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    /* the server may refuse and close before it has read everything */
    for (size_t sent = 0; sent < length;) {
        ssize_t put = send(fd, request + sent, length - sent, MSG_NOSIGNAL);
        if (put <= 0)
            break;
        sent += (size_t)put;
    }
    shutdown(fd, SHUT_WR);
    answer->status = 0;
    dt_strbuf_reset(&answer->head);
    dt_strbuf_reset(&answer->body);
    while ((got = recv(fd, chunk, sizeof(chunk), 0)) > 0)
        dt_strbuf_add(&answer->head, chunk, (size_t)got);
    if (got < 0 && errno != ECONNRESET && errno != EAGAIN)
        fail_msg("recv: %s", strerror(errno));
    close(fd);
    end = memmem(answer->head.data, answer->head.length, "\r\n\r\n", 4);
    if (end == NULL)
        return;
    end += 4;
    dt_strbuf_add(&answer->body, end, answer->head.length - (size_t)(end - answer->head.data));
    answer->head.length = (size_t)(end - answer->head.data);
    answer->head.data[answer->head.length] = '\0';
    assert_int_equal(sscanf(answer->head.data, "HTTP/1.1 %d", &answer->status), 1);
    if (strcasestr(answer->head.data, "Transfer-Encoding: chunked") != NULL &&
        strncmp(request, "HEAD", 4) != 0)
        unchunk(&answer->body);
}

void test_web_get(const test_web *web, test_answer *answer, const char *path)
{
    dt_strbuf request;

    dt_strbuf_init(&request);
    dt_strbuf_add_fmt(&request,
                      "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", path,
                      web->port);
    test_web_send(web, answer, request.data, request.length);
    dt_strbuf_release(&request);
}

json_t *test_web_json(const test_web *web, int status, const char *path)
{
    dt_error err = DT_ERROR_INIT;
    test_answer answer;
    json_t *json = NULL;

    test_answer_init(&answer);
    test_web_get(web, &answer, path);
    if (answer.status != status)
        print_error("GET %s: %s\n", path, answer.body.data);
    assert_int_equal(answer.status, status);
    assert_non_null(strstr(answer.head.data, "Content-Type: application/json"));
    if (dt_json_parse(&json, answer.body.data, answer.body.length, "answer", &err) != DT_OK)
        print_error("%s\n", err.message);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "api")), 1);
    test_answer_release(&answer);
    return json;
}
