/* display: decodes UTF-8, and makes text from outside safe to show, on a terminal, on a page and in a
 * spreadsheet.
 *
 * Removed or replaced: C0 controls except tab and line feed, DEL, C1 controls (U+0080-9F: a terminal reads U+009B
 * as ESC [), bidirectional controls (U+061C, U+200E/F, U+202A-E, U+2066-F: they make a line read as
 * another), line and paragraph separators (U+2028/9), invisible characters that carry text
 * (U+FFF9-B, U+E0000-7F), and bytes that are not UTF-8.
 */
#ifndef DT_BASE_DISPLAY_H
#define DT_BASE_DISPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* utf8: decodes and encodes strict UTF-8, one code point at a time (Unicode 15, table 3-7).
 *
 * Refuses over-long forms, surrogates and code points above U+10FFFF, so that every text has one spelling and a
 * decoded text encodes to the same bytes.
 */

#define DT_UTF8_CODES 0x110000 /* number of code points */
#define DT_UTF8_MAX   4        /* of the longest code point */

#define DT_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for invalid bytes */

/* Decodes the code point at `at`, of which `left` bytes may be read. Returns its bytes (1 to 4), or 0 if it is invalid
 * or truncated. */
size_t dt_utf8_decode(uint32_t *code, const unsigned char *at, size_t left);

/* Returns the number of bytes before the first invalid byte; `length` if all are valid. */
size_t dt_utf8_valid_length(const char *text, size_t length);

/* Writes the code point, which must be valid, to `out` (DT_UTF8_MAX bytes). Returns the bytes written. */
size_t dt_utf8_encode(char *out, uint32_t code);

/* Appends the text, with U+FFFD for each invalid byte, so that it can be used in JSON. */
void dt_utf8_add_valid(dt_strbuf *out, const char *text, size_t length);

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

/* csv: writes text as a CSV cell (RFC 4180).
 *
 * A cell that a spreadsheet would take for a formula (=, +, -, @, tab or return first) gets an apostrophe
 * in front, which shows it as text: names come from people, other programs and imported files.
 */

/* Appends the text, in quotes if needed. Write numbers without this function. */
void dt_csv_add_text(dt_strbuf *out, const char *text);

/* --- numbers */
#define DT_FORMAT_SIZE 32
/* The shortest text that reads back as the same double; "nan", "inf", "-inf". */
char *dt_format_exact(char *out, size_t size, double value);

#ifdef __cplusplus
}
#endif

#endif
