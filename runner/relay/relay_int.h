/* relay_int: what a command that another machine runs is made of: its token and its frames. */
#ifndef DT_RUNNER_RELAY_RELAY_INT_H
#define DT_RUNNER_RELAY_RELAY_INT_H

#include "base/error.h"
#include "base/strbuf.h"

/* frames: what a command said elsewhere, taken apart as it comes (web/command.h).
 *
 * Errors  DT_ERR_CORRUPT for bytes that are no frames, or that follow the end
 */

typedef struct dt_frames {
    /* Bytes of stdout ('o') or stderr ('e'); length 0: the other side is still there. */
    dt_status (*take)(void *context, char what, const char *bytes, size_t length, dt_error *err);
    void *context;
    dt_strbuf head; /* of a frame, as far as it is there */
    char what;
    size_t left; /* bytes of the frame that are still to come */
    bool ended;
    int exit_code;
} dt_frames;

void dt_frames_init(dt_frames *out,
                    dt_status (*take)(void *, char, const char *, size_t, dt_error *),
                    void *context);
void dt_frames_release(dt_frames *frames);
dt_status dt_frames_add(dt_frames *frames, const char *bytes, size_t length, dt_error *err);

/* token: what a server wants to be shown (web/access.h). */

/* From DTRUN_TOKEN, or the file that DTRUN_TOKEN_FILE names; nothing is added where neither is set.
 * DT_ERR_USAGE for what is no token, or a file that others may read. */
dt_status dt_relay_token(dt_strbuf *out, dt_error *err);

#endif
