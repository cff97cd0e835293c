#include "runner/channel/lines.h"

#include <string.h>

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
