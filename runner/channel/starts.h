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
#ifndef DT_RUNNER_STARTS_H
#define DT_RUNNER_STARTS_H

#include <stdbool.h>

#include "base/error.h"

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
