/* detach: start this program again, to outlive us, and hear from it when it is ready.
 *
 * It runs in a session of its own, its parent is init, its stdin is /dev/null, its
 * stdout and stderr go to a log file. It tells by dt_detach_ready, on a pipe whose number is in
 * DTRUN_READY_FD, that it serves, or why it cannot: nobody sleeps and hopes.
 *
 * Errors  what the program itself reported, code and message; DT_ERR_IO where it died without a
 *         word (the message has the log's last lines, and its name); DT_ERR_TIMEOUT
 */
#ifndef DT_RUNNER_DETACH_H
#define DT_RUNNER_DETACH_H

#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

/* What the program gets of its own; what is not said is the caller's. */
typedef struct dt_detach_place {
    char **environment;    /* NAME=value, ended by NULL; NULL: the caller's */
    const char *directory; /* NULL, or one that is gone: the caller's */
    int umask;             /* -1: the caller's */
} dt_detach_place;

/* argv[0] is only what lists of processes show. place: may be NULL. */
dt_status dt_detach_start(const char *const *argv, const char *log_path,
                          const dt_detach_place *place, double timeout_seconds, dt_error *err);

/* Appends the last two lines that were written to a log after its first `from` bytes, without their times and joined by
 * "; ". Nothing if there is none. */
void dt_detach_last_words(dt_strbuf *out, const char *log_path, int64_t from);

/* First thing in the program: the pipe to who waits, kept from its own children; -1 where nobody
 * does. */
int dt_detach_claim(void);

/* Tells, once: DT_OK, or what `err` holds. *ready is -1 afterwards; good where it was before. */
void dt_detach_ready(int *ready, dt_status st, const dt_error *err);

#endif
