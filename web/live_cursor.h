/* live_cursor: encodes what a follower of a run has received, as text that the client sends back.
 *
 *   STORE.ATTEMPT.EVENT.LOG[.STEP:SERIES+SERIES-SERIES]...     740:17-22+25 all of these are at step 740
 *
 * STORE identifies the store file, since another file has other numbers. The cursor is self-contained, so that it
 * survives a restart of the server. Clients must treat it as opaque.
 */
#ifndef DT_WEB_LIVE_CURSOR_H
#define DT_WEB_LIVE_CURSOR_H

#include "base/strbuf.h"
#include "store/store.h"

typedef struct dt_web_cursor {
    uint64_t store;
    dt_since since;
    int64_t log_bytes; /* received of the log of the followed rank */
} dt_web_cursor;

#define DT_WEB_CURSOR_BYTES_MOST ((size_t)24 << 10) /* a longer cursor is refused */

/* Returns STORE of the file at a path. */
uint64_t dt_web_cursor_store(const char *path);
void dt_web_cursor_add(dt_strbuf *out, const dt_web_cursor *cursor);
/* Parses untrusted text into the arena; false if it is not a cursor. */
bool dt_web_cursor_read(dt_web_cursor *out, const char *text, dt_arena *arena);

#endif
