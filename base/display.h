/* display: text from outside made fit to be shown: names, reasons, log lines, paths, host names,
 * what ssh and other programs said. This is the one place that knows what text may do to a reader.
 *
 * Not shown as they are: C0 controls but tab and line feed, DEL, C1 controls (U+0080-9F: a terminal
 * takes U+009B for ESC [), what turns the direction of text (U+061C, U+200E/F, U+202A-E, U+2066-F:
 * it makes a line read as another), line and paragraph separators (U+2028/9), what is invisible
 * and carries text (U+FFF9-B, U+E0000-7F), and bytes that are not UTF-8.
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
    DT_DISPLAY_BROKEN   /* a byte that is none of a character */
} dt_display_kind;

/* What is at `at`, of which `left` (> 0) bytes may be read, and in *length how many bytes it has.
 */
dt_display_kind dt_display_next(size_t *length, const unsigned char *at, size_t left);

/* For a terminal: a '?' for each that is not shown, tab and line feed as they are. */
void dt_display_add(dt_strbuf *out, const char *text, size_t length);

/* Columns of a terminal that the text takes as dt_display_add writes it, a tab one: 2 for a wide
 * character (CJK, emoji), 0 for a mark upon the one before it. */
size_t dt_display_columns(const char *text, size_t length);

/* For the page: what is not shown is left out, terminals' escape sequences whole (colours, titles,
 * links); bytes that are no text become U+FFFD. The result is valid UTF-8. */
void dt_display_add_page(dt_strbuf *out, const char *text, size_t length);

/* JSON text from `from` on: what is not shown is written as \uXXXX, which is the same value. */
void dt_display_escape_json(dt_strbuf *json, size_t from);

#ifdef __cplusplus
}
#endif
#endif
