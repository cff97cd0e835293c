/* text: converts the output of a program to valid JSON text.
 *
 * Each byte that is not UTF-8, and NUL, becomes U+FFFD; a final carriage return is removed. A truncated line gets
 * a mark that says so.
 */
#ifndef DT_RUNNER_AGENT_RANK_TEXT_H
#define DT_RUNNER_AGENT_RANK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define DT_TEXT_CUT_MARK " [cut]"

/* Appends to `out`. cut: the line was truncated. */
void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut);

#endif
