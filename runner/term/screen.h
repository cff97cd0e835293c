/* screen: redraws a block in the last lines of a terminal, or takes over the whole terminal and reads keys.
 *
 * Draws on the alternate screen, so that the previous contents return. The terminal is restored by
 * dt_screen_close, while Ctrl-Z suspends the process, and when a signal or crash ends it. Only one screen can be
 * open: terminals and signals belong to the process.
 */
#ifndef DT_RUNNER_TERM_SCREEN_H
#define DT_RUNNER_TERM_SCREEN_H

#include "base/error.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/* live: redraws a block in the last lines of a terminal.
 *
 * Text above the block stays. Each call is one write, so that nothing flickers. Lines of the block are clipped to
 * the width: a wrapped line would break the line count. The cursor is hidden while there is a block, so dt_live_close
 * must be called on every path.
 */

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

/* Keys that are not characters; characters are returned as they are. */
typedef enum dt_key {
    DT_KEY_NONE = 256, /* timeout or new window size: draw again */
    DT_KEY_UP,
    DT_KEY_DOWN,
    DT_KEY_LEFT,
    DT_KEY_RIGHT,
    DT_KEY_PAGE_UP,
    DT_KEY_PAGE_DOWN,
    DT_KEY_HOME,
    DT_KEY_END,
    DT_KEY_ENTER,
    DT_KEY_ESCAPE,
    DT_KEY_INTERRUPT, /* SIGINT, SIGTERM or SIGHUP, or the terminal is gone */
} dt_key;

typedef struct dt_screen {
    dt_term *term; /* borrowed; its size is kept up to date */
    dt_strbuf output;
} dt_screen;

/* Whether keys can be read and `term` can be redrawn. */
bool dt_screen_possible(const dt_term *term);
/* DT_ERR_IO if `term` is not a terminal. */
dt_status dt_screen_open(dt_screen *screen, dt_term *term, dt_error *err);
/* Draws lines of dt_term_add from the top, clipped to the size of the terminal. */
void dt_screen_draw(dt_screen *screen, const char *text);
/* Returns a character or a dt_key, after at most `seconds`. */
int dt_screen_key(dt_screen *screen, double seconds);
void dt_screen_close(dt_screen *screen);

#ifdef __cplusplus
}
#endif

#endif
