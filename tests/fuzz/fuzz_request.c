/* fuzz_request: any bytes as a request of a browser: the first line is a path with its query, the
 * others are credentials. Every answer is JSON, or an error with the reason.
 *
 * The pages are called without a socket, as the report calls them; libmicrohttpd parses HTTP
 * itself.
 * Corpus     corpus/request: PATH?NAME=VALUE&...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "web/access.h"
#include "web/web_int.h"

#define ARGUMENTS  16
#define PARTS_MOST 64 /* of a stream */
#define STEPS      40

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/dtrun-request-XXXXXX";
static dt_store *store;

static void remove_folder(void)
{
    dt_store_close(store);
    dt_file_remove_tree(folder, NULL);
}

/* Makes once two runs, one of them with a curve. */
static void make_store(void)
{
    dt_run run = {.created_ms = 1000,
                  .steps_total = 100,
                  .recipe_path = "/r.yaml",
                  .recipe_text = "name: x\n",
                  .recipe_json = "{}",
                  .recipe_hash = "h"};
    char path[64];

    DT_ASSERT(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
    snprintf(path, sizeof(path), "%s/store.db", folder);
    DT_ASSERT(dt_store_open(&store, path, NULL) == DT_OK);
    run.id = "k3v9x2";
    run.name = "baseline";
    DT_ASSERT(dt_store_run_add(store, &run, NULL) == DT_OK);
    run.id = "m4w8y3";
    run.name = "second";
    DT_ASSERT(dt_store_run_add(store, &run, NULL) == DT_OK);
    DT_ASSERT(dt_store_begin(store, NULL) == DT_OK);
    for (int64_t step = 1; step <= STEPS; step++)
        DT_ASSERT(dt_store_metric_add(store, "k3v9x2", 1, step, "loss", 4.0 / (double)step,
                                      1000 * step, NULL) == DT_OK);
    DT_ASSERT(dt_store_commit(store, NULL) == DT_OK);
}

static void take_stream(dt_web_stream *stream)
{
    dt_error err = DT_ERROR_INIT;
    bool more = true;
    dt_strbuf part;

    dt_strbuf_init(&part);
    for (int i = 0; more && i < PARTS_MOST; i++) {
        if (stream->next(stream->state, store, &part, &more, &err) != DT_OK) {
            DT_ASSERT(err.message[0] != '\0');
            break;
        }
        dt_strbuf_reset(&part);
        if (stream->waits)
            break;
    }
    dt_strbuf_release(&part);
}

static void ask(const char *path, const char *const *arguments)
{
    dt_web_reply reply = {0};
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;
    dt_web_request request = {.store = store,
                              .arena = &arena,
                              .folder = folder,
                              .now_ms = 100000,
                              .arguments = arguments};
    const dt_web_route *route;

    dt_arena_init(&arena, 0);
    route = dt_web_route_find(&request, path);
    if (strstr(route->pattern, "/live") != NULL) { /* needs the server's thread */
        dt_arena_release(&arena);
        return;
    }
    if (route->page(&request, &reply, &err) != DT_OK)
        DT_ASSERT(err.code != DT_OK && err.message[0] != '\0');
    else if (reply.stream.next != NULL)
        take_stream(&reply.stream);
    else
        DT_ASSERT(reply.status >= 200 && reply.status < 500);
    if (reply.stream.free != NULL) /* also after a refusal */
        reply.stream.free(reply.stream.state);
    free(reply.owned);
    dt_arena_release(&arena);
}

/* Parses the lines after the address as link, authorization and cookie, and checks the access rules with them. */
static void try_access(char *rest)
{
    const char *shown[3] = {NULL, NULL, NULL};
    dt_web_access_request access;
    dt_web_entry entry;

    for (int i = 0; i < 3 && rest != NULL; i++)
        shown[i] = strsep(&rest, "\n");
    access = (dt_web_access_request){
        .page = true, .link = shown[0], .authorization = shown[1], .cookie = shown[2]};
    entry = dt_web_entry_of(&access, "0123456789abcdef0123456789abcdef");
    if (shown[0] == NULL)
        DT_ASSERT(entry == DT_WEB_ANONYMOUS);
    DT_ASSERT(dt_web_entry_of(&access, NULL) == DT_WEB_ENTER);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *arguments[2 * ARGUMENTS + 1] = {NULL};
    char *text = malloc(size + 1), *rest = text, *query, *path;
    size_t count = 0;

    DT_ASSERT(text != NULL);
    if (store == NULL)
        make_store();
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    query = strsep(&rest, "\n");
    path = strsep(&query, "?");
    while (query != NULL && count < 2 * ARGUMENTS) {
        char *value = strsep(&query, "&");

        arguments[count++] = strsep(&value, "=");
        arguments[count++] = value != NULL ? value : "";
    }
    ask(path, arguments);
    try_access(rest);
    free(text);
    return 0;
}
