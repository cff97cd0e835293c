/* live: redraws a block in the last lines of a terminal.
 *
 * Text above the block stays. Each call is one write, so that nothing flickers. Lines of the block are clipped to
 * the width: a wrapped line would break the line count. The cursor is hidden while there is a block, so dt_live_close
 * must be called on every path.
 */
#ifndef DT_RUNNER_TERM_LIVE_H
#define DT_RUNNER_TERM_LIVE_H

#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_live {
    dt_term *term;
    dt_strbuf output;
    int lines; /* of the current block */
    bool hidden;
} dt_live;

void dt_live_open(dt_live *live, dt_term *term);
/* Adds `above` (may be "") above the block permanently and replaces the block. Lines of both end with \n. */
void dt_live_draw(dt_live *live, const char *above, const char *block);
/* Removes the block and shows the cursor. */
void dt_live_close(dt_live *live);

#ifdef __cplusplus
}
#endif
#endif
