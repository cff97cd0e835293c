/* dtrun serve: serves the web page on this machine. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/relay/relay.h"
#include "web/access.h"
#include "web/listen.h"
#include "web/server.h"

typedef struct serving {
    dt_call *call;
    const char *token;   /* of the link; NULL: not needed */
    const char *reader;  /* the token that only reads, of a server that writes; else NULL */
    const char *address; /* "127.0.0.1:8642", once it serves */
} serving;

/* Blocks SIGINT and SIGTERM and returns a signalfd that is readable once one of them arrives. */
static dt_status stop_signals(int *fd, dt_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot block signals: %s", strerror(errno));
    *fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot wait for signals: %s", strerror(errno));
    return DT_OK;
}

/* Whether stdout is the system's journal, which other users may read. */
static bool stdout_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM"); /* device:inode */
    struct stat info;
    char own[64];

    if (stream == NULL || fstat(STDOUT_FILENO, &info) != 0)
        return false;
    snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)info.st_dev,
             (unsigned long long)info.st_ino);
    return strcmp(stream, own) == 0;
}

/* "URL?token=TOKEN", or the URL alone. */
static const char *link_of(const serving *s, const char *url, const char *token)
{
    return token != NULL ? dt_arena_printf(s->call->arena, "%s?token=%s", url, token) : url;
}

/* Prints a link, or its object. */
static dt_status report_link(const serving *s, const char *url, bool shown, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *object;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (s->call->json) {
        object = dt_report_object();
        json_object_set_new(object, "url", json_string(url));
        if (shown)
            json_object_set_new(object, "link", json_string(link_of(s, url, s->token)));
        if (shown && s->reader != NULL)
            json_object_set_new(object, "read_link", json_string(link_of(s, url, s->reader)));
        DT_TRY(dt_report_json(object, err));
    } else {
        dt_strbuf_add_fmt(&text, "%s\n", shown ? link_of(s, url, s->token) : url);
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* Path of the file with the address of the running server, for --link. A killed server leaves it. */
static const char *address_path(dt_call *call)
{
    const char *folder;

    if (dt_dir_path(&folder, DT_DIR_STATE, call->arena, NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(call->arena, "%s/serve.address", folder);
}

/* Stores HOST:PORT of `url` in the address file. */
static void keep_address(serving *s, const char *url)
{
    static const char scheme[] = "http://";
    const char *path = address_path(s->call);

    if (path == NULL || strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return;
    url += sizeof(scheme) - 1;
    s->address = dt_arena_strndup(s->call->arena, url, strcspn(url, "/"));
    (void)dt_file_write_atomic(path, s->address, strlen(s->address), 0600, NULL);
}

/* Removes the address file, unless another server has replaced it. */
static void forget_address(const serving *s)
{
    const char *path = address_path(s->call);
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (path != NULL && s->address != NULL && dt_file_read(&text, path, 256, NULL) == DT_OK &&
        strcmp(text.data, s->address) == 0)
        unlink(path);
    dt_strbuf_release(&text);
}

/* Returns the address of the running server of this state folder, or NULL. */
static const char *running_address(dt_call *call)
{
    const char *path = address_path(call), *address = NULL;
    dt_web_listener listener;
    dt_error taken = DT_ERROR_INIT;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (path != NULL && dt_file_read(&text, path, 256, NULL) == DT_OK) {
        /* the server runs if its port is in use */
        if (dt_web_listen(&listener, text.data, &taken) == DT_ERR_BUSY)
            address = dt_arena_strdup(call->arena, text.data);
        else if (taken.code == DT_OK)
            dt_web_listener_close(&listener);
    }
    dt_strbuf_release(&text);
    return address;
}

static void listening(void *context, const char *url)
{
    serving *s = context;
    bool journal = stdout_is_journal();

    keep_address(s, url);
    (void)report_link(s, url, !journal, NULL); /* keep serving if nobody reads this */
    if (s->call->json)
        return;
    dt_report_note(s->call, "%s",
                   journal && s->token != NULL ? "'dtrun serve --link' prints the link to open"
                                               : "stop with Ctrl-C");
    if (s->reader != NULL)
        dt_report_note(s->call,
                       "everybody with this link can change runs; the link that 'dtrun serve "
                       "--link' prints only reads");
}

/* Prints the link of the server at `listen`, which need not run yet. */
static dt_status print_link(const serving *s, const char *listen, dt_error *err)
{
    const char *url = dt_arena_printf(s->call->arena, "http://%s/", listen);
    const char *colon = strrchr(listen, ':');

    if (colon == NULL || strncmp(listen, "unix:", 5) == 0 || strcmp(colon, ":0") == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--link needs the address of the server with its port (--listen HOST:PORT)");
    return report_link(s, url, true, err);
}

/* The tokens of a server, in the state folder. */
typedef struct tokens {
    dt_web_token reader, writer;
} tokens;

/* --new-token replaces both: the token to write would still read. */
static dt_status tokens_find(tokens *out, serving *s, dt_web_options *options, bool write,
                             dt_error *err)
{
    bool renew = dt_arguments_flag(s->call->args, "new-token");
    dt_arena *arena = s->call->arena;
    const char *folder;
    dt_status st = DT_OK;

    if (dt_dir_make(&folder, DT_DIR_STATE, arena, NULL) != DT_OK) /* read-only: look */
        DT_TRY(dt_dir_path(&folder, DT_DIR_STATE, arena, err));
    DT_TRY(dt_web_token_get(&out->reader, folder, DT_WEB_TOKEN_FILE, renew, err));
    s->token = options->token = out->reader.text;
    if (write || (renew && dt_web_token_read(&out->writer, folder, DT_WEB_WRITE_TOKEN_FILE)))
        DT_TRY(dt_web_token_get(&out->writer, folder, DT_WEB_WRITE_TOKEN_FILE, renew, err));
    else if (!dt_web_token_read(&out->writer, folder, DT_WEB_WRITE_TOKEN_FILE))
        goto out;
    options->write_token =
        out->writer.text; /* without --write it reads, so that browsers that have it still work */
    if (write) {
        s->reader = s->token;
        s->token = out->writer.text;
    }
out:
    return st;
}

static dt_status serve(dt_call *call, dt_error *err)
{
    const char *listen = dt_arguments_get(call->args, "listen")->text;
    serving s = {.call = call};
    dt_web_options options = {.listen = listen,
                              .command = {.program = "/proc/self/exe", .check = dt_relay_check},
                              .stop_fd = -1,
                              .listening = listening,
                              .context = &s};
    bool write = dt_arguments_flag(call->args, "write");
    dt_status st = DT_OK;
    tokens found;

    dt_log_init("serve");
    (void)mallopt(M_ARENA_MAX, 2); /* otherwise each of many short threads leaves a heap */
    if (write && dt_arguments_flag(call->args, "no-token"))
        DT_THROW(err, DT_ERR_USAGE,
                 "--write and --no-token cannot be combined: every user of this "
                 "machine could change runs");
    if (write)
        options.changes = options.command.program;
    /* the mode of a Unix socket restricts who can connect */
    if (strncmp(listen, "unix:", 5) != 0 && !dt_arguments_flag(call->args, "no-token"))
        DT_TRY(tokens_find(&found, &s, &options, write, err));
    if (dt_arguments_flag(call->args, "link")) {
        if (!dt_arguments_get(call->args, "listen")->given && running_address(call) != NULL)
            listen = running_address(call);
        return print_link(&s, listen, err);
    }
    DT_TRY(stop_signals(&options.stop_fd, err));
    DT_TRY(dt_web_serve(&options, err));
out:
    if (options.stop_fd >= 0)
        close(options.stop_fd);
    forget_address(&s);
    return st;
}

static const dt_option options[] = {
    {.name = "listen",
     .kind = DT_OPTION_TEXT,
     .value = "ADDRESS",
     .fallback = DT_WEB_LISTEN_DEFAULT,
     .help = "address to serve: HOST:PORT of this machine (port 0: any free port), or unix:PATH"},
    {.name = "write",
     .kind = DT_OPTION_FLAG,
     .help = "let the page change runs: rename, note, tag, archive, stop, delete"},
    {.name = "link",
     .kind = DT_OPTION_FLAG,
     .help = "print the link of the running server and exit"},
    {.name = "no-token",
     .kind = DT_OPTION_FLAG,
     .help = "let every user of this machine read every run"},
    {.name = "new-token",
     .kind = DT_OPTION_FLAG,
     .help = "replace the token; old links and browsers lose access"},
    {0},
};

const dt_command dt_command_serve = {
    .name = "serve",
    .summary = "serve the web page with runs, live charts and logs",
    .operands = "",
    .runs = DT_RUNS_SERVED,
    .options = options,
    .notes =

        "Prints the link to open and serves until Ctrl-C. With --json the link is \"link\", and\n"
        "\"url\" is the address without the token. Serves only at addresses of this machine, and\n"
        "changes nothing without --write.\n"
        "\n"
        "The link has a token, which the browser keeps as a cookie. Every user of this machine\n"
        "can connect to its ports, but nobody can read a run without the token. It is stored in\n"
        "serve.token of the state folder (0600) and stays the same, so that bookmarks keep\n"
        "working. Programs send it as 'Authorization: Bearer TOKEN'. A socket unix:PATH has mode\n"
        "0600 and needs no token. The system's journal does not get the link: 'dtrun serve\n"
        "--link' prints it.\n"
        "\n"
        "With --write the printed link has another token, serve.write-token, whose pages have\n"
        "buttons that change runs; each does what the command of that name does. The first link\n"
        "still only reads. 'dtrun serve --write --link' prints the link that writes.\n",
    .run = serve,
};
