/* stream: sends and receives lines over one descriptor, on a libuv loop.
 *
 * Used for agent ↔ supervisor, agent ↔ rank, a rank's stdout and stderr, and control connections.
 *
 * Ownership  open takes the descriptor; close frees the stream once libuv has closed the handle, and no
 *            callback is called after it. close may be called inside a callback
 * Threads    call from the loop's thread
 */
#ifndef DT_RUNNER_STREAM_H
#define DT_RUNNER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"

typedef struct dt_stream dt_stream;

typedef struct dt_stream_calls {
    void (*line)(void *context, const char *text, size_t length, bool cut); /* MUST */
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

/* Reads the lines for display (lines.h). */
void dt_stream_display(dt_stream *stream, int64_t show_ms);
/* Delivers an incomplete line that is due; returns whether one is left, to be shown later. */
bool dt_stream_show(dt_stream *stream);

/* Delivers an incomplete last line, as at end of file. */
void dt_stream_finish(dt_stream *stream);

#endif
