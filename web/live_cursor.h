/* live_cursor: how far somebody who follows a run has come, as a text that goes to him and back.
 *
 *   STORE.ATTEMPT.EVENT.LOG[.STEP:SERIES+SERIES-SERIES]...     740:17-22+25 all of these are at step 740
 *
 * STORE tells a store file from another one, whose numbers are others. It says everything, so that a server which
 * has begun anew takes it, too; nobody else should look into it.
 */
#ifndef DT_WEB_LIVE_CURSOR_H
#define DT_WEB_LIVE_CURSOR_H

#include "base/strbuf.h"
#include "store/store.h"

typedef struct dt_web_cursor {
    uint64_t store;
    dt_since since;
    int64_t log_bytes; /* of the rank that is followed */
} dt_web_cursor;

#define DT_WEB_CURSOR_BYTES_MOST ((size_t)24 << 10) /* of a text that is read */

/* STORE of the file at a path. */
uint64_t dt_web_cursor_store(const char *path);
void dt_web_cursor_add(dt_strbuf *out, const dt_web_cursor *cursor);
/* Of any bytes; what it needs is in the arena. false: it is none. */
bool dt_web_cursor_read(dt_web_cursor *out, const char *text, dt_arena *arena);

#endif
