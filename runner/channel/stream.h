/* stream: lines both ways over one descriptor, on a libuv loop.
 *
 * Used for agent ↔ supervisor, agent ↔ rank, a rank's stdout and stderr, and control connections.
 *
 * Ownership  open takes the descriptor; close frees the stream once libuv has let go of it, and
 *            no function of `calls` is called after it. Closing inside a call is allowed.
 * Threads    the loop's
 */
#ifndef DT_RUNNER_STREAM_H
#define DT_RUNNER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"

typedef struct dt_stream dt_stream;

typedef struct dt_stream_calls {
    void (*line)(void *context, const char *text, size_t length, bool cut); /* MUST */
    void (*batch)(void *context);   /* MAY: every whole line of what was just read is handed over */
    void (*drained)(void *context); /* MAY: nothing is queued for sending any more */
    void (*ended)(void *context, const char *why); /* MUST: end of file or an error; once */
} dt_stream_calls;

dt_status dt_stream_open(dt_stream **out, uv_loop_t *loop, int fd, size_t max_line_bytes,
                         const dt_stream_calls *calls, void *context, dt_error *err);
void dt_stream_close(dt_stream *stream); /* accepts NULL */

/* Copies the bytes; where the other side is gone, `ended` tells it, once all that it said is read. */
void dt_stream_send(dt_stream *stream, const void *bytes, size_t length);
size_t dt_stream_queued_bytes(const dt_stream *stream);

/* No more is read until it is taken back; what was read is handed over. */
void dt_stream_pause(dt_stream *stream, bool pause);

/* Reads now what is there without waiting, at most about max_bytes: what a process wrote before
 * it died comes before the news of its death. */
void dt_stream_drain(dt_stream *stream, size_t max_bytes);

/* Hands over an unfinished last line, as end of file does. */
void dt_stream_finish(dt_stream *stream);

#endif
