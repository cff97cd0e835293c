#include "runner/channel/stream.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/channel/lines.h"

#include "base/alloc.h"

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
