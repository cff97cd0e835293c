#include "runner/term/live.h"

#include <string.h>

#include "base/file.h"

#define HIDE_CURSOR "\x1b[?25l"
#define SHOW_CURSOR "\x1b[?25h"
#define CLEAR_LINE  "\x1b[K"
#define CLEAR_BELOW "\x1b[J"

void dt_live_open(dt_live *live, dt_term *term)
{
    live->term = term;
    live->lines = 0;
    live->hidden = false;
    dt_strbuf_init(&live->output);
}

/* Adds the lines of `text`. Lines are clipped one column before the right edge, because some
 * terminals wrap after the last column; with `whole` they are not clipped. Returns the number of
 * lines. */
static int add_lines(dt_live *live, const char *text, bool whole)
{
    size_t width = (size_t)(live->term->columns > 1 ? live->term->columns - 1 : 1);
    dt_strbuf line;
    int count = 0;

    dt_strbuf_init(&line);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        dt_strbuf_reset(&line);
        dt_strbuf_add(&line, text, length);
        dt_term_add_clipped(&live->output, live->term, line.data,
                            whole ? dt_term_width(line.data) : width);
        dt_strbuf_add_str(&live->output, CLEAR_LINE "\n");
        text += length + (text[length] == '\n');
        count++;
    }
    dt_strbuf_release(&line);
    return count;
}

/* Write errors are ignored: the run continues without a terminal. */
static void flush(dt_live *live)
{
    (void)dt_file_write_all(live->term->fd, live->output.data, live->output.length, NULL);
    dt_strbuf_reset(&live->output);
}

static void go_to_top(dt_live *live)
{
    if (live->lines > 0)
        dt_strbuf_add_fmt(&live->output, "\r\x1b[%dA", live->lines);
    live->lines = 0;
}

void dt_live_draw(dt_live *live, const char *above, const char *block)
{
    dt_term_measure(live->term);
    if (!live->hidden)
        dt_strbuf_add_str(&live->output, HIDE_CURSOR);
    live->hidden = true;
    go_to_top(live);
    add_lines(live, above, true);
    live->lines = add_lines(live, block, false);
    dt_strbuf_add_str(&live->output, CLEAR_BELOW);
    flush(live);
}

void dt_live_close(dt_live *live)
{
    if (live->hidden) {
        go_to_top(live);
        dt_strbuf_add_str(&live->output, "\r" CLEAR_BELOW SHOW_CURSOR);
        flush(live);
    }
    dt_strbuf_release(&live->output);
}
