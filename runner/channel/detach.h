/* detach: start a program that outlives us, and hear from it when it is ready.
 *
 * The program runs in a session of its own, its parent is init, its stdin is /dev/null, its
 * stdout and stderr go to a log file. It tells by dt_detach_ready, on a pipe whose number is in
 * DTRUN_READY_FD, that it serves, or why it cannot: nobody sleeps and hopes.
 *
 * Errors  what the program itself reported, code and message; DT_ERR_IO where it died without a
 *         word (the message names the log); DT_ERR_TIMEOUT
 */
#ifndef DT_RUNNER_DETACH_H
#define DT_RUNNER_DETACH_H

#include "base/error.h"

dt_status dt_detach_start(const char *const *argv, const char *log_path, double timeout_seconds,
                          dt_error *err);

/* Called once by the program: st DT_OK, or what `err` holds. Good where nobody waits. */
void dt_detach_ready(dt_status st, const dt_error *err);

#endif
