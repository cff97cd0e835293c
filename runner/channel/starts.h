/* starts: counts the starts of a detached process that brought no progress, so that one that dies at once is not
 * started again for ever by every command that misses it.
 *
 * A start that failed, or that follows a crash, counts DT_STARTS_CRASH: it will hardly go better the next time. One after
 * an end that nobody explains counts 1: somebody may have killed the process (SIGKILL), however often.
 *
 * The count is in a small file beside the process's log. Who starts the process adds to it; the process sets it back
 * once it has made progress. After so many starts within dt_times()->starts_window_seconds of one another nobody
 * starts it again until that time has passed since the last one.
 *
 * Threads    any, and any process: a start that is counted twice or not at all does no harm
 * Errors     none: a file that cannot be read or written counts no starts
 */
#ifndef DT_RUNNER_STARTS_H
#define DT_RUNNER_STARTS_H

#include <stdbool.h>

#include "base/error.h"

enum {
    DT_STARTS_CRASH = 4,
    DT_STARTS_MOST = 10 * DT_STARTS_CRASH, /* by commands that only look */
    DT_STARTS_MOST_DELIBERATE =
        30 * DT_STARTS_CRASH, /* by a person, or a sweep's driver, who acts on the run */
};

/* Whether the process that wrote the log last ended by a crash. */
bool dt_starts_follow_crash(const char *log_path);
/* bad: it failed, or dt_starts_follow_crash was true before it. */
void dt_starts_add(const char *path, bool bad);
void dt_starts_clear(const char *path);
bool dt_starts_are_spent(const char *path);

/* DT_ERR_IO with a message if `most` starts are spent: `who` ("the supervisor of run 'x'"), the log's last words, and
 * when it is tried again. */
dt_status dt_starts_check(const char *path, int most, const char *who, const char *log_path,
                          dt_error *err);

#endif
