/* text_lines: iterates over the lines of a text, which end in LF or CR LF; the last line need not
 * end in one. */
#ifndef DT_ENGINE_TOKENS_TEXT_LINES_H
#define DT_ENGINE_TOKENS_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct dt_text_lines {
    const char *at, *end;
} dt_text_lines;

/* Returns the next line, without its end; false: there is none. */
static inline bool dt_text_lines_next(const char **line, size_t *length, dt_text_lines *lines)
{
    const char *stop;
    size_t whole;

    if (lines->at >= lines->end)
        return false;
    stop = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    whole = (size_t)((stop != NULL ? stop : lines->end) - lines->at);
    *line = lines->at;
    *length = whole > 0 && lines->at[whole - 1] == '\r' ? whole - 1 : whole;
    lines->at += whole + 1 <= (size_t)(lines->end - lines->at) ? whole + 1 : whole;
    return true;
}

#endif
