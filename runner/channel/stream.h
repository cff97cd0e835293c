/* stream: lines over one descriptor, on a libuv loop: how arriving bytes are split into lines, the stream,
 * and the listener that accepts its connections.
 *
 * Used for agent ↔ supervisor, agent ↔ rank, a rank's stdout and stderr, and control connections.
 *
 * Ownership  open takes the descriptor; close frees the stream once libuv has closed the handle, and no
 *            callback is called after it. close may be called inside a callback
 * Threads    call from the loop's thread
 */
#ifndef DT_RUNNER_CHANNEL_STREAM_H
#define DT_RUNNER_CHANNEL_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"

/* lines: splits arriving bytes into lines.
 *
 * A line longer than max_bytes is delivered once, truncated and marked; the rest is skipped. No line is lost or
 * delivered twice, however the bytes are split.
 *
 * Display    with show_ms > 0, for output that people read: a carriage return ends a state of a progress bar, which the
 *            next state replaces, and at most one state is delivered in show_ms. An incomplete line is delivered once
 *            nothing has followed for show_ms (dt_lines_show); what follows is another line
 * Ownership  the text of a line is borrowed during the call
 * Threads    use one splitter from one thread
 */

typedef struct dt_lines {
    dt_strbuf pending; /* start of an incomplete line */
    size_t max_bytes;
    bool skipping;           /* the pending line was delivered truncated; skip its rest */
    int64_t show_ms, now_ms; /* 0: no display; time of the bytes, which the caller sets */
    int64_t shown_ms;        /* time of the last state that was delivered */
    int64_t fed_ms;          /* time of the last bytes */
    bool returned;           /* the pending text was ended by a carriage return */
    bool shown;              /* the start of the line was delivered */
} dt_lines;

/* The text has no newline and is not terminated by '\0'. Return false to get no more lines of
 * this input. */
typedef bool dt_lines_fn(void *context, const char *text, size_t length, bool cut);

void dt_lines_init(dt_lines *lines, size_t max_bytes);
void dt_lines_release(dt_lines *lines);
void dt_lines_feed(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                   void *context);
/* Delivers an incomplete line that is due. Returns whether one is left. */
bool dt_lines_show(dt_lines *lines, dt_lines_fn *take, void *context);
/* Call at end of file: delivers a last line without a newline. */
void dt_lines_finish(dt_lines *lines, dt_lines_fn *take, void *context);

typedef struct dt_stream dt_stream;

typedef struct dt_stream_calls {
    void (*line)(void *context, const char *text, size_t length, bool cut); /* MUST */
    /* MAY: the bytes of a read, before their lines */
    void (*bytes)(void *context, const char *bytes, size_t length);
    void (*batch)(void *context);   /* MAY: all complete lines of the last read were delivered */
    void (*drained)(void *context); /* MAY: the send queue is empty */
    void (*ended)(void *context, const char *why); /* MUST: end of file or an error; once */
} dt_stream_calls;

dt_status dt_stream_open(dt_stream **out, uv_loop_t *loop, int fd, size_t max_line_bytes,
                         const dt_stream_calls *calls, void *context, dt_error *err);
void dt_stream_close(dt_stream *stream); /* accepts NULL */

/* Copies and sends the bytes. If the other side is gone, `ended` is called after everything that
 * it sent was read. */
void dt_stream_send(dt_stream *stream, const void *bytes, size_t length);
size_t dt_stream_queued_bytes(const dt_stream *stream);

/* Stops or resumes reading; lines that were read are still delivered. */
void dt_stream_pause(dt_stream *stream, bool pause);

/* Reads what is available without waiting, at most about max_bytes, so that the last output of a
 * process comes before its death. */
void dt_stream_drain(dt_stream *stream, size_t max_bytes);

/* Reads the lines for display. */
void dt_stream_display(dt_stream *stream, int64_t show_ms);
/* Delivers an incomplete line that is due; returns whether one is left, to be shown later. */
bool dt_stream_show(dt_stream *stream);

/* Delivers an incomplete last line, as at end of file. */
void dt_stream_finish(dt_stream *stream);

/* listener: accepts connections to a Unix socket, on a libuv loop.
 *
 * Ownership  the callback must close the connection; close does not remove the socket from the folder
 */

typedef struct dt_listener dt_listener;
typedef void dt_listener_fn(void *context, int connection);

dt_status dt_listener_open(dt_listener **out, uv_loop_t *loop, const char *folder, const char *name,
                           dt_listener_fn *take, void *context, dt_error *err);
void dt_listener_close(dt_listener *listener); /* accepts NULL */

#endif
