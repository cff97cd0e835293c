/* lines: bytes as they arrive, cut into lines.
 *
 * A line longer than max_bytes is handed over once, cut there and marked; its rest is skipped.
 * No line is lost or handed over twice, however the bytes are split.
 *
 * Ownership  the text of a line is borrowed for the length of the call
 * Threads    one splitter, one thread
 */
#ifndef DT_RUNNER_LINES_H
#define DT_RUNNER_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

typedef struct dt_lines {
    dt_strbuf pending; /* the beginning of a line whose end has not come yet */
    size_t max_bytes;
    bool skipping; /* the pending line was handed over cut; its rest is not wanted */
} dt_lines;

/* Not terminated by '\0', without its newline. False: hand over no more of this input. */
typedef bool dt_lines_fn(void *context, const char *text, size_t length, bool cut);

void dt_lines_init(dt_lines *lines, size_t max_bytes);
void dt_lines_release(dt_lines *lines);
void dt_lines_feed(dt_lines *lines, const char *bytes, size_t length, dt_lines_fn *take,
                   void *context);
/* End of file: a last line without a newline. */
void dt_lines_finish(dt_lines *lines, dt_lines_fn *take, void *context);

#endif
