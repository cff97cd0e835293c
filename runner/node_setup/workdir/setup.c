/* setup: runs the recipe's setup command on a node, unless it has run there for the same content. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "engine/checkpoint/digest.h"
#include "recipes/fields/fields.h"
#include "runner/node_setup/node_setup_int.h"

#define PIECE_BYTES    ((size_t)65536)
#define SEND_SECONDS   30.0
#define SILENT_SECONDS 1e8 /* only a stop ends a setup that prints nothing */
#define SETTLE_SECONDS 30.0
#define NEWS_SECONDS   5.0
#define TAIL_BYTES     400
#define LOG_NAME       "setup.log"

typedef struct setting {
    const dt_prepare_request *request;
    const dt_node_layout *layout;
    const char *command, *folder, *entry;
    bool activates; /* the command begins with `activate`, for a login shell */
    dt_remote remote;
    int log, lock;
    dt_strbuf tail; /* the last bytes of the output */
    double told_seconds;
} setting;

/* The key stands for the node, the command and the content of the folder. */
static const char *entry_of(const setting *all, const char *cache, dt_arena *arena)
{
    const char *tree = json_string_value(json_object_get(all->request->plan, "tree"));
    const char *text = dt_arena_printf(arena, "%s\n%s\n%s\n%s", all->request->node,
                                       all->layout->workdir != NULL ? "" : all->folder,
                                       tree != NULL ? tree : "", all->command);
    char hex[DT_DIGEST_SIZE];

    dt_digest_of(hex, text, strlen(text));
    return dt_arena_printf(arena, "%s/setups/%s", cache, hex);
}

/* Returns the request as a line, with the values of the variables. */
static dt_status make_request(dt_strbuf *out, const setting *all, dt_error *err)
{
    const json_t *items = json_object_get(json_object_get(all->request->plan, "recipe"), "env"),
                 *item;
    json_t *env = json_object();
    dt_status st = DT_OK;
    dt_strbuf value;
    size_t i;

    dt_strbuf_init(&value);
    json_array_foreach((json_t *)items, i, item) {
        const char *text = json_string_value(item),
                   *equals = text != NULL ? strchr(text, '=') : NULL;

        if (equals == NULL)
            continue;
        st = dt_env_expand(&value, equals + 1, err);
        if (st != DT_OK)
            dt_error_prefix(err, "'env.%.*s'", (int)(equals - text), text);
        DT_TRY(st);
        json_object_setn_new(env, text, (size_t)(equals - text), json_string(value.data));
    }
    {
        json_t *json = json_pack("{s:s, s:b, s:s, s:O}", "command", all->command, "login",
                                 (int)all->activates, "folder", all->folder, "env", env);

        dt_json_write(out, json);
        json_decref(json);
    }
    dt_strbuf_add_char(out, '\n');
out:
    json_decref(env);
    dt_strbuf_release(&value);
    return st;
}

static void tell(const setting *all, const char *text)
{
    if (all->request->progress != NULL)
        all->request->progress(all->request->context, text);
}

static bool is_cancelled(const setting *all)
{
    return all->request->cancelled != NULL && atomic_load(all->request->cancelled);
}

/* Nodes that share a folder run its setup one after the other. */
static dt_status lock_folder(setting *all, const char *cache, dt_arena *arena, dt_error *err)
{
    char hex[DT_DIGEST_SIZE];
    const char *path;
    dt_status st = DT_OK;

    if (all->layout->workdir != NULL)
        return DT_OK;
    dt_digest_of(hex, all->folder, strlen(all->folder));
    path = dt_arena_printf(arena, "%s/setups", cache);
    DT_TRY(dt_file_make_dirs(path, 0700, err));
    path = dt_arena_printf(arena, "%s/%s.lock", path, hex);
    while ((st = dt_file_lock(&all->lock, path, err)) == DT_ERR_BUSY) {
        dt_error_clear(err);
        if (is_cancelled(all))
            DT_THROW(err, DT_ERR_BUSY, "cancelled");
        dt_clock_sleep_seconds(0.2);
    }
out:
    return st;
}

/* --- the output */

static void add_tail(setting *all, const char *bytes, size_t length)
{
    dt_strbuf_add(&all->tail, bytes, length);
    if (all->tail.length > 4 * TAIL_BYTES)
        dt_strbuf_remove_front(&all->tail, all->tail.length - 2 * TAIL_BYTES);
}

/* Reports the last complete line. */
static void tell_line(setting *all)
{
    double now = dt_clock_monotonic_seconds();
    const char *end = memrchr(all->tail.data, '\n', all->tail.length), *start;
    char text[160];

    if (end == NULL || now - all->told_seconds < NEWS_SECONDS)
        return;
    start = memrchr(all->tail.data, '\n', (size_t)(end - all->tail.data));
    start = start != NULL ? start + 1 : all->tail.data;
    all->told_seconds = now;
    snprintf(text, sizeof(text), "setup: %.*s", (int)(end - start), start);
    tell(all, text);
}

static dt_status take_output(setting *all, int64_t left, dt_error *err)
{
    char *piece = dt_malloc(PIECE_BYTES);
    dt_status st = DT_OK;
    size_t got;

    while (left > 0) {
        DT_TRY(dt_remote_read(&all->remote, piece,
                              left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES, &got,
                              SETTLE_SECONDS, err));
        if (got == 0)
            DT_THROW(err, DT_ERR_PEER, "node '%s': the connection ended during the setup",
                     all->request->node);
        if (all->log >= 0)
            (void)dt_file_write_all(all->log, piece, got,
                                    NULL); /* a full disk costs the log only */
        add_tail(all, piece, got);
        left -= (int64_t)got;
    }
    tell_line(all);
out:
    free(piece);
    return st;
}

/* Appends the last lines, joined. */
static void add_last_lines(dt_strbuf *out, const dt_strbuf *tail)
{
    size_t from = tail->length > TAIL_BYTES ? tail->length - TAIL_BYTES : 0;
    bool gap = false;

    while (from > 0 && from < tail->length && tail->data[from - 1] != '\n')
        from++;
    for (size_t i = from; i < tail->length; i++) {
        unsigned char c = (unsigned char)tail->data[i];

        if (c == '\n' || c == '\r') {
            gap = out->length > 0;
            continue;
        }
        if (gap)
            dt_strbuf_add_str(out, " | ");
        gap = false;
        dt_strbuf_add_char(out, c < ' ' ? ' ' : (char)c);
    }
}

/* Reads the node's lines up to "end CODE". */
static dt_status attend(setting *all, int *code, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf line;

    dt_strbuf_init(&line);
    for (;;) {
        long long number;

        DT_TRY(dt_nodes_line(&line, &all->remote, SILENT_SECONDS, err));
        if (line.length == 0) { /* its stderr has the reason */
            DT_TRY(dt_remote_finish(&all->remote, NULL, NULL, SETTLE_SECONDS, err));
            DT_THROW(err, DT_ERR_PEER, "node '%s': the setup ended without an answer",
                     all->request->node);
        }
        if (sscanf(line.data, "end %lld", &number) == 1) {
            *code = (int)number;
            break;
        }
        if (strcmp(line.data, "wait") == 0)
            tell(all, "setup: waiting for that of another run");
        else if (strcmp(line.data, "cached") == 0)
            tell(all, "setup: done before");
        else if (sscanf(line.data, "log %lld", &number) == 1 && number > 0)
            DT_TRY(take_output(all, number, err));
        else
            DT_THROW(err, DT_ERR_CORRUPT, "node '%s': unexpected answer to the setup: '%.80s'",
                     all->request->node, line.data);
    }
out:
    dt_strbuf_release(&line);
    return st;
}

static dt_status run(setting *all, const char *log_path, dt_error *err)
{
    const char *const words[] = {all->layout->agent,
                                 "node",
                                 "setup",
                                 all->entry,
                                 all->layout->workdir != NULL ? all->layout->workdir : "-",
                                 NULL};
    char end[DT_EXIT_WORDS_BYTES];
    dt_strbuf text;
    dt_status st = DT_OK;
    int code = 0;

    dt_strbuf_init(&text);
    DT_TRY(make_request(&text, all, err));
    all->told_seconds = dt_clock_monotonic_seconds();
    tell(all, "setup");
    DT_TRY(dt_remote_open(&all->remote, all->request->node, words, all->request->cancelled, err));
    DT_TRY(dt_remote_write(&all->remote, text.data, text.length, SEND_SECONDS, err));
    DT_TRY(attend(all, &code, err));
    dt_remote_write_end(&all->remote);
    if (code != 0) {
        dt_strbuf_reset(&text);
        add_last_lines(&text, &all->tail);
        DT_THROW(err, DT_ERR_UNSUPPORTED, "node '%s': the setup %s: %.300s (all lines: '%s')",
                 all->request->node, dt_exit_words(end, code),
                 text.length > 0 ? text.data : "it printed nothing", log_path);
    }
    DT_TRY(dt_remote_finish(&all->remote, NULL, NULL, SETTLE_SECONDS, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Ends what the setup started, if the process that attends to it on the node died. */
static void end_left(const setting *all)
{
    const char *const words[] = {all->layout->agent, "node", "end_setup", all->entry, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf answer;

    dt_strbuf_init(&answer);
    if (dt_nodes_ask(&answer, all->request->node, words, NULL, 0, SETTLE_SECONDS, NULL, &problem) !=
        DT_OK)
        dt_log_warn("%s", problem.message);
    dt_strbuf_release(&answer);
}

dt_status dt_stage_setup(dt_node_layout *layout, const char *there_cache,
                         const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    const json_t *recipe = json_object_get(request->plan, "recipe");
    setting all = {.request = request, .layout = layout, .log = -1, .lock = -1};
    const char *log_path = dt_arena_printf(arena, "%s/" LOG_NAME, request->here);
    const char *cache, *activate;
    dt_status st = DT_OK;

    all.command = json_string_value(json_object_get(recipe, "setup"));
    if (all.command == NULL || all.command[0] == '\0')
        return DT_OK;
    activate = json_string_value(json_object_get(recipe, "activate"));
    all.activates = activate != NULL && activate[0] != '\0';
    if (all.activates)
        all.command = dt_command_activated(activate, all.command, arena);
    dt_strbuf_init(&all.tail);
    all.folder = json_string_value(json_object_get(json_object_get(recipe, "workdir"), "folder"));
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    all.entry = entry_of(&all, there_cache != NULL ? there_cache : cache, arena);
    layout->setup = all.entry;
    DT_TRY(dt_file_make_dirs(request->here, 0700, err));
    all.log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    DT_TRY(lock_folder(&all, cache, arena, err));
    DT_TRY(run(&all, log_path, err));
out:
    dt_remote_close(&all.remote);
    if (st != DT_OK && st != DT_ERR_UNSUPPORTED && all.entry != NULL)
        end_left(&all);
    if (all.log >= 0)
        close(all.log);
    if (all.lock >= 0)
        close(all.lock);
    dt_strbuf_release(&all.tail);
    return st;
}
