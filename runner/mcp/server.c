/* server: reads requests until the end of stdin, and runs the commands of the calls.
 *
 * A command writes into files in memory, not into pipes: a launch or a stop that outlives the server does not fail for
 * lack of a reader. At most RUNNING_MOST commands run at a time, the others wait; with WAITING_MOST calls that wait
 * nothing more is read. At the end of stdin calls have END_SECONDS to finish. Then commands that only read are ended;
 * the others continue without a server. A cancelled call is ended and gets no answer: by SIGTERM, which a command passes
 * on to the programs that it started, and SIGKILL after KILL_SECONDS if it only reads.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "runner/mcp/mcp.h"

enum { RUNNING_MOST = 8, WAITING_MOST = 256, READ_BYTES = 1 << 16, LOOK_MS = 100 };

#define END_SECONDS  1.0
#define KILL_SECONDS 1.0

extern char **environ;

typedef struct call {
    struct call *next;
    dt_arena arena; /* has the words */
    const dt_mcp_tool *tool;
    const char **words;
    json_t *id;
    bool modern, started, cancelled, too_long;
    double kill_at; /* once it got SIGTERM, if it only reads; else 0 */
    dt_child child;
    int files[2], ended; /* stdout, stderr, and a pidfd; -1: none */
} call;

typedef struct server {
    dt_mcp_session session;
    size_t answer_most;
    dt_strbuf line; /* received bytes of a message that is not complete */
    bool skips;     /* the rest of a message that is too long */
    bool at_end;    /* of stdin */
    call *first;    /* oldest first */
    size_t running, waiting;
    char **read_environment; /* of commands that only read */
    dt_arena arena;
} server;

/* --- lines */

static dt_status send_line(const json_t *line, dt_error *err)
{
    dt_strbuf text, whole;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    dt_strbuf_init(&whole);
    dt_json_write(&whole, line);
    dt_json_shorten(&text, whole.data);
    while (text.length > 0 && text.data[text.length - 1] == '\n')
        text.length--;
    dt_strbuf_add_char(&text, '\n');
    if (dt_file_write_all(STDOUT_FILENO, text.data, text.length, NULL) != DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    dt_strbuf_release(&text);
    dt_strbuf_release(&whole);
    return st;
}

static dt_status send_and_free(json_t *line, dt_error *err)
{
    dt_status st = send_line(line, err);

    json_decref(line);
    return st;
}

/* --- calls */

static void close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void call_free(call *c)
{
    close_file(&c->files[0]);
    close_file(&c->files[1]);
    close_file(&c->ended);
    json_decref(c->id);
    dt_arena_release(&c->arena);
    free(c);
}

static void call_add(server *s, dt_mcp_request *request, dt_arena *arena)
{
    call **at = &s->first, *c = dt_calloc(1, sizeof(*c));

    *c = (call){.arena = *arena,
                .tool = request->tool,
                .words = request->words,
                .id = json_incref(request->id),
                .modern = request->modern,
                .files = {-1, -1},
                .ended = -1};
    while (*at != NULL)
        at = &(*at)->next;
    *at = c;
    s->waiting++;
}

static dt_status call_start(call *c, const server *s, dt_error *err)
{
    static const char *const names[] = {"stdout", "stderr"};
    dt_status st = DT_OK;

    for (int i = 0; i < 2; i++)
        if ((c->files[i] = memfd_create(names[i], MFD_CLOEXEC)) < 0)
            DT_THROW(err, DT_ERR_IO, "cannot create a file in memory: %s", strerror(errno));
    DT_TRY(dt_child_start(
        &c->child,
        &(dt_child_spec){.argv = c->words,
                         .program = "/proc/self/exe",
                         .environment = c->tool->writes ? environ : s->read_environment,
                         .out = c->files[0],
                         .errors = c->files[1]},
        err));
    c->ended = pidfd_open(c->child.pid, 0); /* without one the loop looks now and then */
out:
    return st;
}

/* Reads a file from its start, at most DT_MCP_OUTPUT_MOST bytes. */
static void read_file(dt_strbuf *out, int fd)
{
    char bytes[READ_BYTES];
    ssize_t got;

    while (out->length < DT_MCP_OUTPUT_MOST &&
           (got = pread(fd, bytes, sizeof(bytes), (off_t)out->length)) > 0)
        dt_strbuf_add(out, bytes, (size_t)got);
}

static dt_status send_result(const server *s, call *c, int exit_code, dt_error *err)
{
    dt_mcp_output output = {.exit_code = exit_code, .too_long = c->too_long};
    dt_strbuf text, errors;
    dt_status st = DT_OK;

    if (c->cancelled)
        return DT_OK;
    dt_strbuf_init(&text);
    dt_strbuf_init(&errors);
    read_file(&text, c->files[0]);
    read_file(&errors, c->files[1]);
    output.text = text.data;
    output.text_length = text.length;
    output.errors = errors.data;
    st = send_and_free(
        dt_mcp_reply(c->id, c->modern, dt_mcp_answer(c->tool, &output, s->answer_most)), err);
    dt_strbuf_release(&text);
    dt_strbuf_release(&errors);
    return st;
}

static void call_remove(server *s, call **at)
{
    call *c = *at;

    *at = c->next;
    if (c->started)
        s->running--;
    else
        s->waiting--;
    call_free(c);
}

/* Ends a command whose output grows without end. */
static void check_length(call *c)
{
    struct stat info;

    for (int i = 0; i < 2; i++)
        if (fstat(c->files[i], &info) == 0 && info.st_size > (off_t)DT_MCP_OUTPUT_MOST) {
            c->too_long = true;
        }
}

static bool is_late(const call *c)
{
    return c->kill_at > 0 && dt_clock_monotonic_seconds() >= c->kill_at;
}

/* Answers calls whose commands have ended, and starts those that wait. */
static dt_status advance(server *s, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int code = 0;

    for (call **at = &s->first; *at != NULL;) {
        call *c = *at;

        if (!c->started && s->running < RUNNING_MOST) {
            c->started = true;
            s->waiting--;
            s->running++;
            if (call_start(c, s, &problem) != DT_OK) {
                st = send_and_free(
                    dt_mcp_reply(c->id, c->modern, dt_mcp_answer_error(problem.message)), err);
                dt_error_clear(&problem);
                call_remove(s, at);
                DT_TRY(st);
                continue;
            }
        }
        if (c->started)
            check_length(c);
        if (c->started && (c->too_long || is_late(c) || dt_child_has_ended(&c->child, &code))) {
            dt_child_end(&c->child); /* and what is left of its group */
            st = send_result(s, c, code, err);
            call_remove(s, at);
            DT_TRY(st);
            continue;
        }
        at = &c->next;
    }
out:
    return st;
}

static void end_command(call *c)
{
    if (c->child.group > 0)
        (void)kill(-c->child.group, SIGTERM);
    if (!c->tool->writes)
        c->kill_at = dt_clock_monotonic_seconds() + KILL_SECONDS;
}

static void cancel(server *s, const json_t *id)
{
    for (call **at = &s->first; *at != NULL; at = &(*at)->next) {
        call *c = *at;

        if (c->cancelled || !json_equal(c->id, id))
            continue;
        c->cancelled = true;
        if (c->started)
            end_command(c);
        else
            call_remove(s, at);
        return;
    }
}

/* --- messages */

static dt_status take_line(server *s, const char *line, size_t length, dt_error *err)
{
    dt_mcp_request request;
    dt_status st = DT_OK;
    dt_arena arena;

    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (length == 0)
        return DT_OK;
    dt_arena_init(&arena, 0);
    dt_mcp_read(&request, &s->session, line, length, &arena);
    if (request.cancelled != NULL)
        cancel(s, request.cancelled);
    if (request.tool != NULL)
        call_add(s, &request, &arena); /* takes the arena */
    else
        dt_arena_release(&arena);
    if (request.reply != NULL)
        st = send_line(request.reply, err);
    dt_mcp_request_release(&request);
    return st;
}

/* Takes the bytes of one message, or of the rest of one that is too long. */
static dt_status take_end(server *s, const char *bytes, size_t length, dt_error *err)
{
    dt_status st = DT_OK;

    if (s->skips)
        st = send_and_free(dt_mcp_unreadable("a message of more than 4 MiB"), err);
    else if (s->line.length == 0)
        st = take_line(s, bytes, length, err);
    else {
        dt_strbuf_add(&s->line, bytes, length);
        st = take_line(s, s->line.data, s->line.length, err);
    }
    s->skips = false;
    dt_strbuf_reset(&s->line);
    return st;
}

static dt_status take_bytes(server *s, const char *bytes, size_t length, dt_error *err)
{
    dt_status st = DT_OK;

    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t taken = end != NULL ? (size_t)(end - bytes) : length;

        s->skips = s->skips || s->line.length + taken > DT_MCP_LINE_MOST;
        if (s->skips)
            dt_strbuf_reset(&s->line);
        if (end == NULL) {
            if (!s->skips)
                dt_strbuf_add(&s->line, bytes, length);
            return DT_OK;
        }
        DT_TRY(take_end(s, bytes, taken, err));
        bytes = end + 1;
        length -= taken + 1;
    }
out:
    return st;
}

static dt_status read_input(server *s, dt_error *err)
{
    char bytes[READ_BYTES];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (got > 0)
        return take_bytes(s, bytes, (size_t)got, err);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return DT_OK;
    s->at_end = true;
    return s->line.length > 0 || s->skips ? take_end(s, "", 0, err) : DT_OK;
}

/* Waits for a message or for the end of a command, at most `ms`. *readable: stdin has bytes. */
static dt_status wait_for(bool *readable, server *s, int ms, dt_error *err)
{
    struct pollfd all[1 + RUNNING_MOST];
    nfds_t count = 1;

    all[0] = (struct pollfd){.fd = s->at_end || s->waiting >= WAITING_MOST ? -1 : STDIN_FILENO,
                             .events = POLLIN};
    for (const call *c = s->first; c != NULL; c = c->next)
        if (c->started && c->ended >= 0 && count < 1 + RUNNING_MOST)
            all[count++] = (struct pollfd){.fd = c->ended, .events = POLLIN};
    if (poll(all, count, ms) < 0 && errno != EINTR)
        return DT_FAIL(err, DT_ERR_IO, "cannot wait for a message: %s", strerror(errno));
    *readable = all[0].fd >= 0 && all[0].revents != 0;
    return DT_OK;
}

static dt_status serve(server *s, dt_error *err)
{
    double end = 0, now;
    dt_status st = DT_OK;
    bool readable = false;

    for (;;) {
        DT_TRY(advance(s, err));
        now = dt_clock_monotonic_seconds();
        if (s->at_end && end == 0)
            end = now + END_SECONDS;
        if (s->at_end && (s->first == NULL || now >= end))
            return DT_OK;
        DT_TRY(wait_for(&readable, s, s->running > 0 ? LOOK_MS : -1, err));
        if (readable)
            DT_TRY(read_input(s, err));
    }
out:
    return st;
}

/* The environment of commands that only read: as a command that `dtrun serve` runs for others, it restarts nothing and
 * ends with the server. */
static char **make_environment(dt_arena *arena)
{
    size_t count = 0;
    char **all;

    while (environ[count] != NULL)
        count++;
    all = dt_arena_alloc_array(arena, count + 2, sizeof(all[0]));
    memcpy(all, environ, count * sizeof(all[0]));
    all[count] = dt_arena_strdup(arena, "DTRUN_TERMINAL=file:100x40");
    all[count + 1] = NULL;
    return all;
}

/* Ends the commands that only read, all at once, and forgets all calls. */
static void end_all(server *s)
{
    int code;

    for (call *c = s->first; c != NULL; c = c->next)
        if (c->started && !c->tool->writes)
            end_command(c);
    while (s->first != NULL) {
        call *c = s->first;
        double left = c->kill_at - dt_clock_monotonic_seconds();

        if (c->kill_at > 0) {
            (void)dt_child_wait(&c->child, &code, left > 0 ? left : 0);
            dt_child_end(&c->child);
        }
        call_remove(s, &s->first);
    }
}

dt_status dt_mcp_serve(bool writes, size_t answer_most, dt_error *err)
{
    server s = {.session.writes = writes, .answer_most = answer_most};
    dt_status st;

    signal(SIGPIPE, SIG_IGN);
    dt_arena_init(&s.arena, 0);
    dt_strbuf_init(&s.line);
    s.read_environment = make_environment(&s.arena);
    st = serve(&s, err);
    end_all(&s);
    dt_strbuf_release(&s.line);
    dt_arena_release(&s.arena);
    return st;
}
