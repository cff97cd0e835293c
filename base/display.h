/* display: makes text from outside safe to show: names, reasons, log lines, paths, host names, output of ssh and other
 * programs. All rules about dangerous characters are here.
 *
 * Removed or replaced: C0 controls except tab and line feed, DEL, C1 controls (U+0080-9F: a terminal reads U+009B
 * as ESC [), bidirectional controls (U+061C, U+200E/F, U+202A-E, U+2066-F: they make a line read as
 * another), line and paragraph separators (U+2028/9), invisible characters that carry text
 * (U+FFF9-B, U+E0000-7F), and bytes that are not UTF-8.
 */
#ifndef DT_BASE_DISPLAY_H
#define DT_BASE_DISPLAY_H

#include <stddef.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_display_kind {
    DT_DISPLAY_PLAIN,   /* a character, tab and line feed among them */
    DT_DISPLAY_CONTROL, /* a character that must not be shown */
    DT_DISPLAY_BROKEN   /* a byte that is not part of a UTF-8 character */
} dt_display_kind;

/* Classifies the character at `at`, of which `left` (> 0) bytes may be read; *length: its bytes. */
dt_display_kind dt_display_next(size_t *length, const unsigned char *at, size_t left);

/* For a terminal: writes '?' for each character that must not be shown; keeps tab and line feed. */
void dt_display_add(dt_strbuf *out, const char *text, size_t length);

/* Returns the terminal columns of the text as dt_display_add writes it: 2 for a wide character (CJK, emoji), 0 for a
 * combining mark, 1 for a tab. */
size_t dt_display_columns(const char *text, size_t length);

/* For the web page: leaves out characters that must not be shown, and whole terminal escape sequences (colours,
 * titles, links). Bytes that are not UTF-8 become U+FFFD. The result is valid UTF-8. */
void dt_display_add_page(dt_strbuf *out, const char *text, size_t length);

/* In the JSON text from offset `from`, writes characters that must not be shown as \uXXXX; the value is the same. */
void dt_display_escape_json(dt_strbuf *json, size_t from);

#ifdef __cplusplus
}
#endif
#endif
