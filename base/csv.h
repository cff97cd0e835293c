/* csv: writes text as a CSV cell (RFC 4180).
 *
 * A cell that a spreadsheet would take for a formula (=, +, -, @, tab or return first) gets an apostrophe
 * in front, which shows it as text: names come from people, other programs and imported files.
 */
#ifndef DT_BASE_CSV_H
#define DT_BASE_CSV_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the text, in quotes if needed. Write numbers without this function. */
void dt_csv_add_text(dt_strbuf *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
