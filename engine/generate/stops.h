/* stops: text that is written piece by piece, up to a stop text, whole characters at a time.
 *
 * What may be the beginning of a stop text, or of a character, is held back until it is known.
 */
#ifndef DT_ENGINE_GENERATE_STOPS_H
#define DT_ENGINE_GENERATE_STOPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

typedef struct dt_stops {
    const char *const *texts; /* none is empty */
    size_t count;
} dt_stops;

/* text[from ..] has not been given out yet. Where a stop text ends in it, it is cut off and true is
 * returned; *until: how far it can be given out. */
bool dt_stops_find(size_t *until, dt_strbuf *text, size_t from, const dt_stops *stops);

#endif
