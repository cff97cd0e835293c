/* text: checks bytes before they are parsed, and formats text for messages.
 *
 * libyaml reports broken bytes without a line; these checks report the line. libyaml also ends a line at
 * U+2028 and U+2029, which editors do not: they are refused.
 */
#ifndef DT_RECIPES_FIELDS_TEXT_H
#define DT_RECIPES_FIELDS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A position in a text, counted from 1; line 0: the whole source. */
typedef struct dt_text_mark {
    const char *source; /* "gpt.yaml", "--set clip=0"; NULL: no position */
    int line, column;   /* column in characters */
} dt_text_mark;

/* Adds "gpt.yaml:14:9", or only the source. */
void dt_text_mark_write(dt_strbuf *out, const dt_text_mark *mark);

/* Prefixes a recorded message with "gpt.yaml:14:9: ". */
void dt_text_mark_prefix(dt_error *err, const dt_text_mark *mark);

/* Reads the mark that begins a message; false if there is none. */
bool dt_text_mark_read(dt_text_mark *out, const char *message, const char *source);

/* Returns the message without the mark that begins it, and without the colon and the blank after the mark. */
const char *dt_text_without_mark(const char *message, const dt_text_mark *mark);

/* DT_ERR_RECIPE on broken UTF-8, control characters, and tabs in the indentation. The error has line and
 * column if `start` has line 1, else only the mark `start`. */
dt_status dt_text_check(const char *text, size_t length, const dt_text_mark *start, dt_error *err);

bool dt_text_is_utf8(const char *text);

/* Returns the first character at or after `mark` that looks like a space or is invisible (no-break
 * space, zero-width space, ...), and moves `mark` to it. NULL: there is none. */
const char *dt_text_find_unseen(uint32_t *code, const char *text, size_t length,
                                dt_text_mark *mark);

/* "no-break space U+00A0" */
void dt_text_unseen_name(dt_strbuf *out, uint32_t code);

/* Adds the text in single quotes for messages: cut after 60 characters, with '?' for control characters
 * (which could control a terminal) and broken bytes, and <U+00A0> for invisible characters. */
void dt_text_show(dt_strbuf *out, const char *text);

/* The same for a word that should be one of dtrun's ASCII words. Because other letters can look the same,
 * the first one is named by its code point: 'd?ta', with U+0430 as character 2. */
void dt_text_show_word(dt_strbuf *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
