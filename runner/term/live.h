/* live: the last lines of a terminal, redrawn in place.
 *
 * What is printed above stays; the block below is drawn over. Each call is one write, so that
 * nothing flickers; lines are cut to the width, so that none wraps and the count stays true.
 * The cursor is hidden while a block stands: dt_live_close must be reached on every way out.
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
    int lines; /* of the block that stands */
    bool hidden;
} dt_live;

void dt_live_open(dt_live *live, dt_term *term);
/* `above` (may be "") scrolls up for good; `block` replaces the block. Both end lines with \n. */
void dt_live_draw(dt_live *live, const char *above, const char *block);
/* Takes the block away and shows the cursor again. */
void dt_live_close(dt_live *live);

#ifdef __cplusplus
}
#endif
#endif
