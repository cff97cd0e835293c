#include "runner/channel/lines.h"

#include <string.h>

#include "base/banned.h"

void dt_lines_init(dt_lines *lines, size_t max_bytes)
{
    dt_strbuf_init(&lines->pending);
    lines->max_bytes = max_bytes;
    lines->skipping = false;
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

void dt_lines_feed(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                   void *context)
{
    const char *at = bytes, *end = bytes + length;

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

void dt_lines_finish(dt_lines *lines, dt_lines_fn *take, void *context)
{
    if (lines->pending.length > 0)
        line_end(lines, "", 0, take, context);
    lines->skipping = false;
}
