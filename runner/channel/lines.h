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
#ifndef DT_RUNNER_LINES_H
#define DT_RUNNER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

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

#endif
