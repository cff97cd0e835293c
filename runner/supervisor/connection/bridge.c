#include "runner/supervisor/connection/connection_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runner/channel/protocol.h"
#include "runner/channel/stream.h"

#include "base/memory.h"

#define PROBLEM_LINE_BYTES 400
#define PROBLEM_MOST_BYTES 65536 /* bytes of stderr that are read after the command has exited */

struct dt_bridge {
    uv_process_t process;
    dt_stream *stream, *problems; /* NULL: at end of file, or not open yet */
    dt_bridge_calls calls;
    void *context;
    bool closed, paused, frozen;
};

/* --- callbacks of the streams */

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_bridge *bridge = context;

    bridge->calls.line(bridge->context, text, length, cut);
}

static void on_batch(void *context)
{
    dt_bridge *bridge = context;

    bridge->calls.batch(bridge->context);
}

static void on_ended(void *context, const char *why)
{
    dt_bridge *bridge = context;

    if (bridge->problems != NULL)
        dt_stream_drain(bridge->problems, PROBLEM_MOST_BYTES);
    bridge->calls.ended(bridge->context, why);
}

static void on_problem(void *context, const char *text, size_t length, bool cut)
{
    dt_bridge *bridge = context;

    bridge->calls.problem(bridge->context, text, length);
}

static void on_problems_ended(void *context, const char *why)
{
    dt_bridge *bridge = context;

    dt_stream_close(bridge->problems);
    bridge->problems = NULL;
}

/* --- open and close */

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* The streams report the end of the connection; here the process is only reaped. */
static void on_process_exit(uv_process_t *process, int64_t code, int number)
{
    dt_bridge *bridge = process->data;

    if (bridge->closed)
        uv_close((uv_handle_t *)process, on_closed);
}

static dt_status spawn(dt_bridge *bridge, uv_loop_t *loop, const char **argv, int lines,
                       int problems, dt_error *err)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = lines},
        {.flags = UV_INHERIT_FD, .data.fd = lines},
        {.flags = UV_INHERIT_FD, .data.fd = problems},
    };
    uv_process_options_t options = {
        .exit_cb = on_process_exit,
        .file = argv[0],
        .args = (char **)argv,
        .stdio_count = 3,
        .stdio = stdio,
    };
    int problem = uv_spawn(loop, &bridge->process, &options);

    bridge->process.data = bridge;
    return problem == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot run '%s': %s", argv[0], uv_strerror(problem));
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

dt_status dt_bridge_open(dt_bridge **out, uv_loop_t *loop, const char **argv,
                         const dt_bridge_calls *calls, void *context, dt_error *err)
{
    static const dt_stream_calls line_calls = {
        .line = on_line, .batch = on_batch, .ended = on_ended};
    static const dt_stream_calls problem_calls = {.line = on_problem, .ended = on_problems_ended};
    int lines[2] = {-1, -1}, problems[2] = {-1, -1};
    dt_bridge *bridge = NULL;
    dt_status st;

    *out = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines) != 0 ||
        pipe2(problems, O_CLOEXEC) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create the pipes to a node: %s", strerror(errno));
    bridge = dt_calloc(1, sizeof(*bridge));
    bridge->calls = *calls;
    bridge->context = context;
    DT_TRY(spawn(bridge, loop, argv, lines[1], problems[1], err));
    st = dt_stream_open(&bridge->stream, loop, lines[0], DT_PROTOCOL_MAX_LINE_BYTES, &line_calls,
                        bridge, err);
    lines[0] = -1; /* owned by the stream, even on failure */
    if (st != DT_OK)
        goto out;
    st = dt_stream_open(&bridge->problems, loop, problems[0], PROBLEM_LINE_BYTES, &problem_calls,
                        bridge, err);
    problems[0] = -1;
out:
    close_pair(lines);
    close_pair(problems);
    if (st == DT_OK)
        *out = bridge;
    else
        dt_bridge_close(bridge);
    return st;
}

void dt_bridge_close(dt_bridge *bridge)
{
    if (bridge == NULL)
        return;
    dt_stream_close(bridge->stream);
    dt_stream_close(bridge->problems);
    bridge->closed = true;
    if (!uv_is_active((uv_handle_t *)&bridge->process) ||
        uv_process_kill(&bridge->process, SIGKILL) != 0)
        uv_close((uv_handle_t *)&bridge->process, on_closed);
}

void dt_bridge_send(dt_bridge *bridge, json_t *command)
{
    dt_strbuf line;

    if (bridge != NULL) {
        dt_strbuf_init(&line);
        dt_json_write(&line, command);
        dt_strbuf_add_char(&line, '\n');
        dt_stream_send(bridge->stream, line.data, line.length);
        dt_strbuf_release(&line);
    }
    json_decref(command);
}

void dt_bridge_pause(dt_bridge *bridge, bool pause)
{
    if (bridge == NULL)
        return;
    bridge->paused = pause;
    dt_stream_pause(bridge->stream, pause || bridge->frozen);
}

void dt_bridge_freeze(dt_bridge *bridge, bool freeze)
{
    if (bridge == NULL)
        return;
    bridge->frozen = freeze;
    (void)uv_process_kill(&bridge->process, freeze ? SIGSTOP : SIGCONT);
    dt_stream_pause(bridge->stream, freeze || bridge->paused);
}
