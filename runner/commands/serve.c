/* dtrun serve: the page. */
#define _GNU_SOURCE
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

#include "base/banned.h"

typedef struct serving {
    dt_call *call;
    const char *token;   /* NULL: none is needed */
    const char *address; /* "127.0.0.1:8642", once it serves */
} serving;

/* A descriptor that can be read once Ctrl-C or a polite kill has come; they do nothing else. */
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

/* Whether stdout is the system's log, which others may read and which keeps what it is told. */
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
static const char *link_of(const serving *s, const char *url)
{
    const char *link = NULL;

    if (s->token != NULL)
        link = dt_arena_printf(s->call->arena, "%s?token=%s", url, s->token);
    return link != NULL ? link : url;
}

/* Where the server of this state folder answers, for --link. A server that was killed leaves it behind. */
static const char *address_path(dt_call *call)
{
    const char *folder;

    if (dt_dir_path(&folder, DT_DIR_STATE, call->arena, NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(call->arena, "%s/serve.address", folder);
}

/* "127.0.0.1:8642" of "http://127.0.0.1:8642/". */
static void keep_address(serving *s, const char *url)
{
    static const char scheme[] = "http://";
    const char *path = address_path(s->call);

    if (path == NULL || strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return;
    url += sizeof(scheme) - 1;
    s->address = dt_arena_strndup(s->call->arena, url, strcspn(url, "/"));
    if (s->address != NULL)
        (void)dt_file_write_atomic(path, s->address, strlen(s->address), 0600, NULL);
}

/* Another server may have written its own since. */
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

/* NULL where no server of this state folder runs. */
static const char *running_address(dt_call *call)
{
    const char *path = address_path(call), *address = NULL;
    dt_web_listener listener;
    dt_error taken = DT_ERROR_INIT;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (path != NULL && dt_file_read(&text, path, 256, NULL) == DT_OK) {
        /* it runs if its port cannot be had */
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
    json_t *object;
    dt_strbuf text;

    keep_address(s, url);
    if (!s->call->json) {
        dt_strbuf_init(&text);
        dt_strbuf_add_fmt(&text, "%s\n", journal ? url : link_of(s, url));
        (void)dt_report_text(&text, NULL);
        dt_strbuf_release(&text);
        dt_report_note(s->call, "%s",
                       journal && s->token != NULL ? "'dtrun serve --link' prints the link to open"
                                                   : "Ctrl-C ends it");
        return;
    }
    object = dt_report_object();
    json_object_set_new(object, "url", json_string(url));
    if (!journal)
        json_object_set_new(object, "link", json_string(link_of(s, url)));
    (void)dt_report_json(object, NULL); /* serving does not depend on who reads this */
}

/* The link of a server that runs, or will. */
static dt_status print_link(const serving *s, const char *listen, dt_error *err)
{
    const char *url = dt_arena_printf(s->call->arena, "http://%s/", listen);
    const char *colon = strrchr(listen, ':');
    dt_status st = DT_OK;
    json_t *object;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (url == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    if (colon == NULL || strncmp(listen, "unix:", 5) == 0 || strcmp(colon, ":0") == 0)
        DT_THROW(err, DT_ERR_USAGE, "'--link' needs the address that is served, with its port");
    if (s->call->json) {
        object = dt_report_object();
        json_object_set_new(object, "url", json_string(url));
        json_object_set_new(object, "link", json_string(link_of(s, url)));
        DT_TRY(dt_report_json(object, err));
    } else {
        dt_strbuf_add_fmt(&text, "%s\n", link_of(s, url));
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status token_find(dt_web_token *token, dt_call *call, dt_error *err)
{
    const char *folder;
    dt_status st = DT_OK;

    if (dt_dir_make(&folder, DT_DIR_STATE, call->arena, NULL) != DT_OK) /* read-only: look */
        DT_TRY(dt_dir_path(&folder, DT_DIR_STATE, call->arena, err));
    DT_TRY(dt_web_token_get(token, folder, dt_arguments_flag(call->args, "new-token"), err));
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
    dt_status st = DT_OK;
    dt_web_token token;

    dt_log_init("serve");
    (void)mallopt(M_ARENA_MAX, 2); /* or each of many short threads leaves a heap behind */
    /* a Unix socket has a mode, which says who may connect */
    if (strncmp(listen, "unix:", 5) != 0 && !dt_arguments_flag(call->args, "no-token")) {
        DT_TRY(token_find(&token, call, err));
        s.token = options.token = token.text;
    }
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
     .help = "where the page is: HOST:PORT of this machine (port 0: any), or unix:PATH"},
    {.name = "link",
     .kind = DT_OPTION_FLAG,
     .help = "print the link of the server that runs, and exit"},
    {.name = "no-token",
     .kind = DT_OPTION_FLAG,
     .help = "every user of this machine may read every run"},
    {.name = "new-token",
     .kind = DT_OPTION_FLAG,
     .help = "make another token: links and browsers of the old one are shut out"},
    {0},
};

const dt_command dt_command_serve = {
    .name = "serve",
    .summary = "the page: runs, live charts, logs, for a browser on this machine",
    .operands = "",
    .options = options,
    .notes =
        "Prints the link to open, as \"link\" under --json (\"url\" is the address alone), and\n"
        "serves until Ctrl-C. It only reads, and only at addresses of this machine.\n"
        "\n"
        "The link has a token, which the browser keeps as a cookie; without it nobody reads a\n"
        "run, for every user of the machine reaches its ports. It is in serve.token of the state\n"
        "folder (0600) and stays the same, so that links and bookmarks last. Programs send it\n"
        "as 'Authorization: Bearer TOKEN'. A socket unix:PATH has mode 0600 and needs none. In\n"
        "the system's journal the link is left out: 'dtrun serve --link' prints it.\n",
    .run = serve,
};
