/* text: what is asked of bytes before anybody parses them, and how they are shown.
 *
 * libyaml reports broken bytes without a line; here they get one. It also ends a line at U+2028 and
 * U+2029, where no editor does: those are refused.
 */
#ifndef DT_RECIPES_TEXT_H
#define DT_RECIPES_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a text as people count, from 1; line 0: the source as a whole. */
typedef struct dt_text_mark {
    const char *source; /* "gpt.yaml", "--set clip=0"; NULL: nowhere */
    int line, column;   /* column in characters */
} dt_text_mark;

/* "gpt.yaml:14:9", or the source alone. */
void dt_text_mark_write(dt_strbuf *out, const dt_text_mark *mark);

/* Puts "gpt.yaml:14:9: " in front of a recorded message. */
void dt_text_mark_prefix(dt_error *err, const dt_text_mark *mark);

/* The mark in that source which stands in front of a message; false: none does. */
bool dt_text_mark_read(dt_text_mark *out, const char *message, const char *source);

/* DT_ERR_RECIPE on broken UTF-8, control characters, and tabs that indent; told with line and
 * column where the text starts at line 1, at `start` as a whole where that has none. */
dt_status dt_text_check(const char *text, size_t length, const dt_text_mark *start, dt_error *err);

bool dt_text_is_utf8(const char *text);

/* The first character at or after `mark` that a person takes for a space or does not see (no-break
 * space, zero-width space, ...); `mark` moves to it. NULL: there is none. */
const char *dt_text_find_unseen(uint32_t *code, const char *text, size_t length,
                                dt_text_mark *mark);

/* "no-break space U+00A0" */
void dt_text_unseen_name(dt_strbuf *out, uint32_t code);

/* The text in single quotes as messages repeat it: cut after 60 characters, control characters
 * (they could steer a terminal) and broken bytes as '?', those that nobody sees as <U+00A0>. */
void dt_text_show(dt_strbuf *out, const char *text);

/* The same of a word that should have been one of dtrun's own, all of which are ASCII: other
 * letters look like those, so the first is named by number: 'd?ta', with U+0430 as character 2. */
void dt_text_show_word(dt_strbuf *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
