/* stops: finds stop texts in text that is generated piece by piece, and splits it at whole characters.
 *
 * A suffix that could be the start of a stop text, or of a character, is held back until that is decided.
 */
#ifndef DT_ENGINE_GENERATE_STOPS_H
#define DT_ENGINE_GENERATE_STOPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

typedef struct dt_stops {
    const char *const *texts; /* stop texts, none of them empty */
    size_t count;
} dt_stops;

/* Search text[from ..], which has not been emitted yet. If it contains a stop text, cut the text
 * there and return true. *until: how far the text can be emitted. */
bool dt_stops_find(size_t *until, dt_strbuf *text, size_t from, const dt_stops *stops);

#endif
