/* text: bytes that a program printed, made fit for JSON.
 *
 * What is not UTF-8, and NUL, becomes U+FFFD, a mark for each bad byte; a final carriage return
 * goes. A line that was cut gets a mark that says so.
 */
#ifndef DT_RUNNER_AGENT_RANK_TEXT_H
#define DT_RUNNER_AGENT_RANK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define DT_TEXT_CUT_MARK " [cut]"

/* Adds to `out`. */
void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut);

#endif
