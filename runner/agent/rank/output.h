/* output: what a rank writes: text that is made clean, the last lines, and events of the engine's channel,
 * which are checked. */
#ifndef DT_RUNNER_AGENT_RANK_OUTPUT_H
#define DT_RUNNER_AGENT_RANK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/strbuf.h"

/* text: converts the output of a program to valid JSON text.
 *
 * Each byte that is not UTF-8, and NUL, becomes U+FFFD; a final carriage return is removed. A truncated line gets
 * a mark that says so.
 */

#define DT_TEXT_CUT_MARK " [cut]"

/* Appends to `out`. cut: the line was truncated. */
void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut);

/* tail: keeps the last lines that a rank printed, for the report of its death. */

#define DT_TAIL_LINES 50

typedef struct dt_tail {
    char *lines[DT_TAIL_LINES]; /* ring buffer; NULL: unused */
    size_t next;
} dt_tail;

void dt_tail_add(dt_tail *tail, const char *text); /* copies; long lines are truncated */
void dt_tail_release(dt_tail *tail);

/* Returns a new reference: an array of strings, oldest first. */
json_t *dt_tail_to_json(const dt_tail *tail);

/* event: parses and checks one line from a rank before it goes into the journal.
 *
 * A rank may send only the events of the engine's channel (engine/channel/events.h). The fields that the
 * supervisor relies on are checked here, next to the program that would be at fault.
 *
 * Errors  DT_ERR_CORRUPT with a message for the rank's log
 */

/* *out: new reference; *kind is borrowed from it. */
dt_status dt_agent_event_parse(json_t **out, const char **kind, const char *text, size_t length,
                               dt_error *err);

#endif
