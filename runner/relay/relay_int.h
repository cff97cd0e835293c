/* relay_int: declares the token and the frames of a command that a server runs. */
#ifndef DT_RUNNER_RELAY_RELAY_INT_H
#define DT_RUNNER_RELAY_RELAY_INT_H

#include "base/error.h"
#include "base/strbuf.h"

/* frames: parses the streamed output of a command on a server (web/command.h).
 *
 * Errors  DT_ERR_CORRUPT for malformed frames, and for bytes after the end
 */

typedef struct dt_frames {
    /* Receives bytes of stdout ('o') or stderr ('e'); length 0: a sign of life. */
    dt_status (*take)(void *context, char what, const char *bytes, size_t length, dt_error *err);
    void *context;
    dt_strbuf head; /* the received part of a frame's header */
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

/* token: reads the token for a server (web/access.h). */

#endif
