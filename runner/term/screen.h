/* screen: the whole terminal for a while, and the keys that are pressed meanwhile.
 *
 * Draws on the alternate screen, so that what stood there comes back. The terminal is as it was before on
 * every way out: at dt_screen_close, while Ctrl-Z holds the process, and where a signal ends it (a crash
 * too). One at a time: terminals and signals belong to the process.
 */
#ifndef DT_RUNNER_TERM_SCREEN_H
#define DT_RUNNER_TERM_SCREEN_H

#include "base/error.h"
#include "runner/term/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is no character; those are themselves. */
typedef enum dt_key {
    DT_KEY_NONE = 256, /* the time is over, or the window has another size: draw again */
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
    DT_KEY_INTERRUPT, /* SIGINT, SIGTERM or SIGHUP came, or the terminal went away */
} dt_key;

typedef struct dt_screen {
    dt_term *term; /* borrowed; its size is kept up to date */
    dt_strbuf output;
} dt_screen;

/* Whether keys can be read and `term` drawn over. */
bool dt_screen_possible(const dt_term *term);
/* DT_ERR_IO: it is no terminal. */
dt_status dt_screen_open(dt_screen *screen, dt_term *term, dt_error *err);
/* Lines of dt_term_add, from the top; cut to the width and the height. */
void dt_screen_draw(dt_screen *screen, const char *text);
/* A character or a dt_key, after `seconds` at most. */
int dt_screen_key(dt_screen *screen, double seconds);
void dt_screen_close(dt_screen *screen);

#ifdef __cplusplus
}
#endif
#endif
