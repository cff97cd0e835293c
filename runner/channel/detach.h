/* detach: starts this program again as a detached process, and counts the starts that made no progress.
 *
 * The process has its own session, init as parent, /dev/null as stdin, and a log file as stdout and stderr. It
 * calls dt_detach_ready, which writes to the pipe whose number is in DTRUN_READY_FD, when it serves or if it
 * cannot; so nobody waits by sleeping.
 *
 * Errors  code and message that the program reported; DT_ERR_IO if it died without a report (the message has the
 *         last lines of the log, and its name); DT_ERR_TIMEOUT
 */
#ifndef DT_RUNNER_CHANNEL_DETACH_H
#define DT_RUNNER_CHANNEL_DETACH_H

#include <stdbool.h>
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

/* starts: counts the starts of a detached process that made no progress, so that a process that
 * dies at once is not restarted forever by every command that needs it.
 *
 * A start that failed, or that follows a crash, counts DT_STARTS_CRASH: the next one will probably
 * fail too. A start after an unexplained end counts 1: someone may have killed the process
 * (SIGKILL).
 *
 * The count is in a small file next to the process's log. The starter adds to it; the process
 * resets it once it has made progress. After too many starts, each within
 * dt_times()->starts_window_seconds of the one before, the process is not started until that time
 * has passed since the last start.
 *
 * Threads    any, also in several processes: a start that is counted twice or not at all does no
 *            harm
 * Errors     none: a file that cannot be read or written counts no starts
 */

enum {
    DT_STARTS_CRASH = 4,
    DT_STARTS_MOST = 10 * DT_STARTS_CRASH, /* limit for commands that only read */
    /* limit for a person, or a sweep's driver, who acts on the run */
    DT_STARTS_MOST_DELIBERATE = 30 * DT_STARTS_CRASH,
};

/* True if the process that last wrote the log crashed. */
bool dt_starts_follow_crash(const char *log_path);
/* bad: the start failed, or dt_starts_follow_crash was true before it. */
void dt_starts_add(const char *path, bool bad);
void dt_starts_clear(const char *path);
bool dt_starts_are_spent(const char *path);

/* Returns DT_ERR_IO if `most` starts are used up; the message has `who` ("the supervisor of run
 * 'x'"), the last lines of the log, and the time of the next try. */
dt_status dt_starts_check(const char *path, int most, const char *who, const char *log_path,
                          dt_error *err);

#endif
