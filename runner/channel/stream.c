/* stream: splits arriving bytes into lines, sends and receives lines over one descriptor on a libuv loop,
 * and accepts connections there. */
#include "runner/channel/stream.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runner/channel/socket.h"

/* --- bytes into lines */

void dt_lines_init(dt_lines *lines, size_t max_bytes)
{
    *lines = (dt_lines){.max_bytes = max_bytes};
    dt_strbuf_init(&lines->pending);
}

void dt_lines_release(dt_lines *lines)
{
    dt_strbuf_release(&lines->pending);
}

/* Delivers a complete line; `bytes` is the part that is not pending. */
static bool line_end(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                     void *context)
{
    size_t total = lines->pending.length + length;
    bool cut = total > lines->max_bytes, more;

    if (lines->skipping) {
        lines->skipping = false;
        return true;
    }
    if (lines->pending.length == 0)
        return take(context, bytes, cut ? lines->max_bytes : length, cut);
    dt_strbuf_add(&lines->pending, bytes, cut ? lines->max_bytes - lines->pending.length : length);
    more = take(context, lines->pending.data, lines->pending.length, cut);
    dt_strbuf_reset(&lines->pending);
    return more;
}

/* Keeps the start of a line; a line that gets too long is delivered truncated, and the rest is
 * skipped. */
static void line_begin(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                       void *context)
{
    if (lines->skipping || length == 0)
        return;
    if (lines->pending.length + length <= lines->max_bytes) {
        dt_strbuf_add(&lines->pending, bytes, length);
        return;
    }
    line_end(lines, bytes, length, take, context);
    lines->skipping = true;
}

/* Ends a line for display. A newline after a part that was delivered does not make an empty line. */
static bool display_end(dt_lines *lines, dt_lines_fn *take, void *context)
{
    bool empty = lines->pending.length == 0 && lines->shown;

    lines->returned = lines->shown = false;
    return empty || line_end(lines, "", 0, take, context);
}

/* Takes text of a line for display; it replaces a state that a carriage return ended. */
static bool display_text(dt_lines *lines, const char *text, size_t length, dt_lines_fn *take,
                         void *context)
{
    bool more = true;

    if (length == 0)
        return true;
    if (lines->returned && lines->pending.length > 0 &&
        lines->now_ms - lines->shown_ms >= lines->show_ms) {
        lines->shown_ms = lines->now_ms;
        more = line_end(lines, "", 0, take, context);
    } else if (lines->returned) {
        dt_strbuf_reset(&lines->pending);
        lines->skipping = false;
    }
    lines->returned = lines->shown = false;
    line_begin(lines, text, length, take, context);
    return more;
}

static void feed_display(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                         void *context)
{
    const char *at = bytes, *end = bytes + length;

    while (at < end) {
        const char *stop = at;

        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        if (!display_text(lines, at, (size_t)(stop - at), take, context))
            return;
        if (stop < end && *stop == '\r')
            lines->returned = true;
        else if (stop < end && !display_end(lines, take, context))
            return;
        at = stop + 1;
    }
}

void dt_lines_feed(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                   void *context)
{
    const char *at = bytes, *end = bytes + length;

    if (lines->show_ms > 0) {
        lines->fed_ms = lines->now_ms;
        feed_display(lines, bytes, length, take, context);
        return;
    }
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL) {
            line_begin(lines, at, (size_t)(end - at), take, context);
            return;
        }
        if (!line_end(lines, at, (size_t)(newline - at), take, context))
            return;
        at = newline + 1;
    }
}

bool dt_lines_show(dt_lines *lines, dt_lines_fn *take, void *context)
{
    if (lines->pending.length == 0 || lines->show_ms == 0)
        return false;
    if (lines->now_ms - lines->fed_ms < lines->show_ms)
        return true;
    lines->shown_ms = lines->now_ms;
    lines->returned = false;
    lines->shown = true;
    line_end(lines, "", 0, take, context);
    return false;
}

void dt_lines_finish(dt_lines *lines, dt_lines_fn *take, void *context)
{
    if (lines->pending.length > 0)
        line_end(lines, "", 0, take, context);
    lines->skipping = false;
}

/* --- lines over a descriptor */

#define READ_BYTES 65536

struct dt_stream {
    uv_pipe_t pipe;
    dt_lines lines;
    dt_stream_calls calls;
    void *context;
    bool ended, closing;
    char bytes[READ_BYTES]; /* buffer of one read; last field, because it is not cleared */
};

typedef struct write_request {
    uv_write_t request;
    dt_stream *stream;
    char bytes[];
} write_request;

static bool take_line(void *context, const char *text, size_t length, bool cut)
{
    dt_stream *stream = context;

    stream->calls.line(stream->context, text, length, cut);
    return !stream->closing;
}

static void end(dt_stream *stream, const char *why)
{
    if (stream->ended || stream->closing)
        return;
    stream->ended = true;
    uv_read_stop((uv_stream_t *)&stream->pipe);
    dt_lines_finish(&stream->lines, take_line, stream);
    if (!stream->closing)
        stream->calls.ended(stream->context, why);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    dt_stream *stream = handle->data;

    *buf = uv_buf_init(stream->bytes, sizeof(stream->bytes));
}

static void feed(dt_stream *stream, size_t length)
{
    stream->lines.now_ms = (int64_t)uv_now(stream->pipe.loop);
    if (stream->calls.bytes != NULL)
        stream->calls.bytes(stream->context, stream->bytes, length);
    dt_lines_feed(&stream->lines, stream->bytes, length, take_line, stream);
    if (!stream->closing && stream->calls.batch != NULL)
        stream->calls.batch(stream->context);
}

static void on_read(uv_stream_t *pipe, ssize_t got, const uv_buf_t *buf)
{
    dt_stream *stream = pipe->data;

    if (got > 0)
        feed(stream, (size_t)got);
    else if (got < 0)
        end(stream, got == UV_EOF ? "end of file" : uv_strerror((int)got));
}

dt_status dt_stream_open(dt_stream **out, uv_loop_t *loop, int fd, size_t max_line_bytes,
                         const dt_stream_calls *calls, void *context, dt_error *err)
{
    dt_stream *stream = dt_malloc(sizeof(*stream));
    int problem;

    *out = NULL;
    memset(stream, 0, offsetof(dt_stream, bytes));
    dt_lines_init(&stream->lines, max_line_bytes);
    stream->calls = *calls;
    stream->context = context;
    uv_pipe_init(loop, &stream->pipe, 0);
    stream->pipe.data = stream;
    problem = uv_pipe_open(&stream->pipe, fd);
    if (problem != 0)
        close(fd);
    else
        problem = uv_read_start((uv_stream_t *)&stream->pipe, on_alloc, on_read);
    if (problem != 0) {
        dt_stream_close(stream);
        return DT_FAIL(err, DT_ERR_IO, "cannot read a channel: %s", uv_strerror(problem));
    }
    *out = stream;
    return DT_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dt_stream *stream = handle->data;

    dt_lines_release(&stream->lines);
    free(stream);
}

void dt_stream_close(dt_stream *stream)
{
    if (stream == NULL || stream->closing)
        return;
    stream->closing = true;
    uv_close((uv_handle_t *)&stream->pipe, on_closed);
}

static void on_written(uv_write_t *request, int problem)
{
    write_request *written = (write_request *)request;
    dt_stream *stream = written->stream;

    free(written);
    if (stream->closing)
        return;
    /* The other side is gone. Its last bytes may still be readable, and then the end of file. */
    if (problem != 0)
        return;
    if (dt_stream_queued_bytes(stream) == 0 && stream->calls.drained != NULL)
        stream->calls.drained(stream->context);
}

void dt_stream_send(dt_stream *stream, const void *bytes, size_t length)
{
    write_request *request;
    uv_buf_t buf;

    if (stream->closing || stream->ended || length == 0)
        return;
    request = dt_malloc(sizeof(*request) + length);
    request->stream = stream;
    memcpy(request->bytes, bytes, length);
    buf = uv_buf_init(request->bytes, (unsigned)length);
    if (uv_write(&request->request, (uv_stream_t *)&stream->pipe, &buf, 1, on_written) != 0)
        free(request); /* the reader sees the broken channel too, and reports it */
}

void dt_stream_display(dt_stream *stream, int64_t show_ms)
{
    stream->lines.show_ms = show_ms;
}

bool dt_stream_show(dt_stream *stream)
{
    if (stream->closing || stream->ended)
        return false;
    stream->lines.now_ms = (int64_t)uv_now(stream->pipe.loop);
    return dt_lines_show(&stream->lines, take_line, stream);
}

size_t dt_stream_queued_bytes(const dt_stream *stream)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&stream->pipe);
}

void dt_stream_pause(dt_stream *stream, bool pause)
{
    if (stream->closing || stream->ended)
        return;
    if (pause)
        uv_read_stop((uv_stream_t *)&stream->pipe);
    else
        uv_read_start((uv_stream_t *)&stream->pipe, on_alloc, on_read);
}

void dt_stream_drain(dt_stream *stream, size_t max_bytes)
{
    uv_os_fd_t fd;
    ssize_t got;

    if (stream->closing || stream->ended || uv_fileno((uv_handle_t *)&stream->pipe, &fd) != 0)
        return;
    for (size_t total = 0; total < max_bytes && !stream->closing; total += (size_t)got) {
        got = read(fd, stream->bytes, sizeof(stream->bytes));
        if (got <= 0)
            return; /* libuv will see the end of file */
        feed(stream, (size_t)got);
    }
}

void dt_stream_finish(dt_stream *stream)
{
    if (!stream->closing && !stream->ended)
        dt_lines_finish(&stream->lines, take_line, stream);
}

/* --- connections to a Unix socket */

struct dt_listener {
    uv_poll_t poll;
    int fd;
    dt_listener_fn *take;
    void *context;
};

static void on_readable(uv_poll_t *poll, int problem, int events)
{
    dt_listener *listener = poll->data;
    int connection;

    if (problem != 0)
        return;
    connection = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0)
        listener->take(listener->context, connection);
}

dt_status dt_listener_open(dt_listener **out, uv_loop_t *loop, const char *folder, const char *name,
                           dt_listener_fn *take, void *context, dt_error *err)
{
    dt_listener *listener;
    dt_status st;

    *out = NULL;
    listener = dt_calloc(1, sizeof(*listener));
    st = dt_socket_listen(&listener->fd, folder, name, err);
    if (st != DT_OK) {
        free(listener);
        return st;
    }
    listener->take = take;
    listener->context = context;
    uv_poll_init(loop, &listener->poll, listener->fd);
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    *out = listener;
    return DT_OK;
}

static void on_listener_closed(uv_handle_t *handle)
{
    dt_listener *listener = handle->data;

    close(listener->fd);
    free(listener);
}

void dt_listener_close(dt_listener *listener)
{
    if (listener != NULL && !uv_is_closing((uv_handle_t *)&listener->poll))
        uv_close((uv_handle_t *)&listener->poll, on_listener_closed);
}
