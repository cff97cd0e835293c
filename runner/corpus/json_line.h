/* json_line: reads one string of a JSON object without building the object, because lines of JSON are read by the
 * gigabyte.
 *
 * Decides only clear cases: an object that has the key once, with a string. All other lines, faulty ones included,
 * are left to jansson, which names the fault. A line that is decided here gives the same text there.
 */
#ifndef DT_RUNNER_CORPUS_JSON_LINE_H
#define DT_RUNNER_CORPUS_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/* Replaces *out with the string of `key` in the object at `line`. Returns false if the line is not a clear case; *out
 * is then unspecified. */
bool dt_json_line_text(dt_strbuf *out, const char *line, size_t length, const char *key);

#endif
