#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "web/command.h"
#include "web/web_int.h"

#define RUNNING_MOST 8
#define WORDS_MOST   128
#define LOOK_MS      250 /* interval of checking whether the server is shutting down */
#define FIRST_SECONDS \
    0.5 /* the first keep-alive, which tells the client that the command has started */
#define END_SECONDS 2.0 /* time limit for a command to exit after it closed its pipes */

extern char **environ;

/* --- the arguments of the command */

typedef struct words {
    dt_arena *arena;
    char *all[WORDS_MOST + 1];
    int count;
    bool bad;
} words;

static enum MHD_Result add_word(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    words *w = context;

    if (strcmp(name, "word") != 0)
        return MHD_YES;
    if (w->count == WORDS_MOST || value == NULL)
        w->bad = true;
    else
        w->all[w->count++] = dt_arena_strdup(w->arena, value);
    return MHD_YES;
}

static dt_status read_words(words *out, const dt_web_request *request, dt_error *err)
{
    *out = (words){.arena = request->arena};
    if (request->connection != NULL)
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_word, out);
    if (out->bad || out->count == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "expected 1 to %d times 'word': a command and its arguments", WORDS_MOST);
    return DT_OK;
}

/* Checks a copy of the words, since the check may reorder its arguments. */
static dt_status check_words(dt_web_commands *commands, const words *given, dt_error *err)
{
    words copy = *given;
    dt_status st;

    pthread_mutex_lock(&commands->checking);
    st = commands->rules.check(copy.count, copy.all, err);
    pthread_mutex_unlock(&commands->checking);
    return st;
}

/* --- the process */

typedef struct running {
    dt_web_commands *commands;
    dt_child child;
    struct pollfd ends[2]; /* stdout and stderr; fd -1: closed */
    double sent;           /* when something was last sent */
} running;

size_t dt_web_environment(char ***out, dt_arena *arena, size_t more)
{
    static const char *const left_out[] = {"DTRUN_SERVER=", "DTRUN_TOKEN=",    "DTRUN_TOKEN_FILE=",
                                           "LC_ALL=",       "DTRUN_TERMINAL=", "JOURNAL_STREAM="};
    size_t count = 0, kept = 0;
    char **all;

    while (environ[count] != NULL)
        count++;
    all = dt_arena_alloc_array(arena, count + more + 1, sizeof(*all));
    for (size_t i = 0; i < count; i++) {
        bool leave = false;

        for (size_t l = 0; l < sizeof(left_out) / sizeof(left_out[0]); l++)
            leave = leave || strncmp(environ[i], left_out[l], strlen(left_out[l])) == 0;
        if (!leave)
            all[kept++] = environ[i];
    }
    all[kept] = NULL;
    *out = all;
    return kept;
}

/* Makes the command's environment, with the client's terminal. */
static dt_status make_environment(char ***out, const dt_web_request *request, dt_error *err)
{
    int64_t columns, rows, colour, unicode, terminal;
    dt_status st = DT_OK;
    size_t kept;
    char **all;

    DT_TRY(dt_web_argument_int(&columns, request, "columns", 80, 1, 10000, err));
    DT_TRY(dt_web_argument_int(&rows, request, "rows", 24, 1, 10000, err));
    DT_TRY(dt_web_argument_int(&colour, request, "colour", 0, 0, 1, err));
    DT_TRY(dt_web_argument_int(&unicode, request, "unicode", 1, 0, 1, err));
    DT_TRY(dt_web_argument_int(&terminal, request, "terminal", 0, 0, 1, err));
    kept = dt_web_environment(&all, request->arena, 2);
    all[kept++] = dt_arena_printf(request->arena, "LC_ALL=%s", unicode != 0 ? "C.UTF-8" : "C");
    all[kept++] = dt_arena_printf(request->arena, "DTRUN_TERMINAL=%s:%lldx%lld%s",
                                  terminal != 0 ? "terminal" : "file", (long long)columns,
                                  (long long)rows, colour != 0 ? ":colour" : "");
    all[kept] = NULL;
    *out = all;
out:
    return st;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static dt_status begin(running *r, const words *given, char *const *environment, dt_error *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    const char *argv[WORDS_MOST + 2] = {"dtrun"};
    dt_status st = DT_OK;

    for (int i = 0; i < given->count; i++)
        argv[i + 1] = given->all[i];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    DT_TRY(dt_child_start(&r->child,
                          &(dt_child_spec){.argv = argv,
                                           .program = r->commands->rules.program,
                                           .environment = environment,
                                           .out = out[1],
                                           .errors = errors[1]},
                          err));
    r->ends[0] = (struct pollfd){.fd = out[0], .events = POLLIN};
    r->ends[1] = (struct pollfd){.fd = errors[0], .events = POLLIN};
    out[0] = errors[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        close_end(&out[i]);
        close_end(&errors[i]);
    }
    return st;
}

static int wait_for(running *r)
{
    int code = -SIGKILL;

    if (!dt_child_wait(&r->child, &code, END_SECONDS))
        dt_child_end(&r->child);
    return dt_exit_code_for_shell(code);
}

static void running_free(void *state)
{
    running *r = state;

    close_end(&r->ends[0].fd);
    close_end(&r->ends[1].fd);
    dt_child_end(&r->child);
    atomic_fetch_sub(&r->commands->running, 1);
    free(r);
}

/* --- the output of the command */

static void add_frame(running *r, dt_strbuf *out, char what, const char *bytes, size_t length)
{
    dt_strbuf_add_fmt(out, "%c %zu\n", what, length);
    dt_strbuf_add(out, bytes, length);
    r->sent = dt_clock_monotonic_seconds();
}

static void read_end(running *r, dt_strbuf *out, int which)
{
    char bytes[DT_WEB_COMMAND_FRAME_BYTES];
    ssize_t got = read(r->ends[which].fd, bytes, sizeof(bytes));

    if (got > 0)
        add_frame(r, out, which == 0 ? 'o' : 'e', bytes, (size_t)got);
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        close_end(&r->ends[which].fd);
}

static dt_status next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    running *r = state;
    dt_status st = DT_OK;

    (void)store;
    *more = true;
    while (out->length == 0 && (r->ends[0].fd >= 0 || r->ends[1].fd >= 0)) {
        if (atomic_load(&r->commands->closing))
            DT_THROW(err, DT_ERR_BUSY, "the server is shutting down");
        if (poll(r->ends, 2, LOOK_MS) < 0 && errno != EINTR)
            DT_THROW(err, DT_ERR_IO, "cannot wait for a command: %s", strerror(errno));
        for (int i = 0; i < 2; i++)
            if (r->ends[i].fd >= 0 && r->ends[i].revents != 0)
                read_end(r, out, i);
        if (dt_clock_monotonic_seconds() - r->sent > DT_WEB_COMMAND_SIGN_SECONDS)
            add_frame(r, out, 'o', "", 0);
    }
    if (r->ends[0].fd >= 0 || r->ends[1].fd >= 0)
        goto out;
    dt_strbuf_add_fmt(out, "x %d\n", wait_for(r));
    *more = false;
out:
    return st;
}

dt_status dt_web_command(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_web_commands *commands = request->commands;
    char **environment = NULL;
    running *r = NULL;
    words given;
    dt_status st = DT_OK;

    if (commands == NULL || commands->rules.program == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND, "this server runs no commands");
    DT_TRY(read_words(&given, request, err));
    DT_TRY(check_words(commands, &given, err));
    DT_TRY(make_environment(&environment, request, err));
    r = dt_calloc(1, sizeof(*r));
    *r = (running){.commands = commands,
                   .ends = {{.fd = -1}, {.fd = -1}},
                   .sent =
                       dt_clock_monotonic_seconds() - DT_WEB_COMMAND_SIGN_SECONDS + FIRST_SECONDS};
    if (atomic_fetch_add(&commands->running, 1) >= RUNNING_MOST)
        DT_THROW(err, DT_ERR_BUSY,
                 "%d commands of other clients are running: try again in a moment", RUNNING_MOST);
    DT_TRY(begin(r, &given, environment, err));
    dt_web_reply_stream(reply, next, running_free, r);
    reply->type = DT_WEB_COMMAND_TYPE;
    reply->stream.waits = true;
    r = NULL;
out:
    if (r != NULL)
        running_free(r);
    return st;
}
