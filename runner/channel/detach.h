/* detach: starts this program again as a detached process, and waits until it is ready.
 *
 * The process has its own session, init as parent, /dev/null as stdin, and a log file as stdout and stderr. It
 * calls dt_detach_ready, which writes to the pipe whose number is in DTRUN_READY_FD, when it serves or if it
 * cannot; so nobody waits by sleeping.
 *
 * Errors  code and message that the program reported; DT_ERR_IO if it died without a report (the message has the
 *         last lines of the log, and its name); DT_ERR_TIMEOUT
 */
#ifndef DT_RUNNER_DETACH_H
#define DT_RUNNER_DETACH_H

#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

/* What differs for the program from the caller; unset fields are the caller's. */
typedef struct dt_detach_place {
    char **environment;    /* NAME=value, ended by NULL; NULL: the caller's */
    const char *directory; /* NULL or missing folder: the caller's */
    int umask;             /* -1: the caller's */
} dt_detach_place;

/* Starts the program and waits until it is ready. argv[0] is only shown in process lists. place:
 * may be NULL. */
dt_status dt_detach_start(const char *const *argv, const char *log_path,
                          const dt_detach_place *place, double timeout_seconds, dt_error *err);

/* Appends the last two lines that were written to a log after its first `from` bytes, without
 * their time stamps and joined by "; ". Appends nothing if there are none. */
void dt_detach_last_words(dt_strbuf *out, const char *log_path, int64_t from);

/* Call first in the program: returns the pipe to the waiting process, closed on exec; -1 if
 * nobody waits. */
int dt_detach_claim(void);

/* Reports DT_OK, or the error in `err`, once. *ready is -1 afterwards; does nothing if it was -1
 * before. */
void dt_detach_ready(int *ready, dt_status st, const dt_error *err);

#endif
