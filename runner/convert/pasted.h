/* pasted: turns text copied from a page, a terminal or a word processor into the script that it shows.
 *
 * Fences     with ``` or ~~~ lines, only what lies between them is kept
 * Prompts    "$ ", "% ", "> ", "(env) $ ", "user@host:~$ " at the beginning of a line are removed
 * Characters blanks that are not U+0020 become one; characters without a width are removed; typographic quotes
 *            become straight ones, a long dash before a name becomes "--"
 * Lines keep their numbers.
 */
#ifndef DT_RUNNER_CONVERT_PASTED_H
#define DT_RUNNER_CONVERT_PASTED_H

#include "base/strbuf.h"

void dt_pasted_text(dt_strbuf *out, const char *text, size_t length);

#endif
