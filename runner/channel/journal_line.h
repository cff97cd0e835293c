/* journal_line: signs and checks a line of a journal (runner/PROTOCOL.md, "Journal").
 *
 * A line ends with `sum`, 8 hexadecimal digits of FNV-1a over what is before it. The agent writes and reads lines;
 * the rebuilding of a history reads them. Lines are passed without their newline.
 */
#ifndef DT_CHANNEL_JOURNAL_LINE_H
#define DT_CHANNEL_JOURNAL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Adds `sum` to the object in `text` that begins at `from`. */
void dt_journal_line_sign(dt_strbuf *text, size_t from);
/* The sequence number of the line; -1 if the line is damaged. */
int64_t dt_journal_line_sequence(const char *line, size_t length);

#endif
