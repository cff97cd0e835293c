/* relay: decides whether a command can run on another machine's server, finds the server and its token,
 * runs the command there and shows its output.
 *
 * Purpose   commands that read runs work the same from another machine: the server runs the command (web/command.h),
 *           and its output is shown as that of a local command
 * Which     commands whose dt_command.runs is DT_RUNS_REMOTE: they only read the store
 * Token     DTRUN_TOKEN, or the file that DTRUN_TOKEN_FILE names, which other users must not be able to read. It is
 *           sent to the server only: redirections are not followed, and other machines require https
 * Trust     the server's output cannot control the terminal: of escape sequences only dtrun's own colours pass
 */
#ifndef DT_RUNNER_RELAY_RELAY_H
#define DT_RUNNER_RELAY_RELAY_H

#include "base/error.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"

/* Returns the server of a command, from --server or DTRUN_SERVER; NULL: run it here. DT_ERR_USAGE: DTRUN_SERVER is set,
 * but the command works on local runs only. */
dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err);

/* Runs the command on the server and sets its exit code. DT_ERR_USAGE: malformed address or token; DT_ERR_BUSY: no
 * answer; DT_ERR_CORRUPT: the server is not dtrun. */
dt_status dt_relay_call(dt_call *call, const char *url, dt_error *err);

/* For the server: checks that clients may run a command (dt_web_command_rules.check). */
dt_status dt_relay_check(int argc, char **argv, dt_error *err);
/* Returns true if a server runs this process for a client. */
bool dt_relay_is_served(void);
/* Makes this process end with the server that runs it. */
void dt_relay_follow_server(void);

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

#endif
