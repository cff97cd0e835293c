/* remote_int: declares what the files of remote.h share.
 *
 *   remote_ask.c       all of it in one call, for short answers
 *   remote.c           from the start of the transport's program until the command runs; closing
 *   remote_talk.c      reading, writing, and the exit code
 *   remote_problems.c  stderr
 */
#ifndef DT_RUNNER_REMOTE_INT_H
#define DT_RUNNER_REMOTE_INT_H

#include "base/exit.h"
#include "runner/transport/remote.h"

#define DT_REMOTE_COMPLAINT_BYTES   8192
#define DT_REMOTE_END_SLICE_SECONDS 0.005
#define DT_REMOTE_SSH_FAILED        255 /* the transport's own exit code */

/* Waits until the descriptor is readable or writable (poll's `events`). DT_ERR_BUSY: `cancelled` was set;
 * DT_ERR_TIMEOUT: after `deadline` (of dt_clock_monotonic_seconds). */
dt_status dt_remote_wait(dt_remote *remote, short events, double deadline, dt_error *err);

/* Returns true if the shared connection with that socket (NULL: none) is open and signed in. */
bool dt_remote_is_open(const char *socket_path);

/* Finds the end mark in an argv of the transport; "": none. */
void dt_remote_find_end_mark(char out[DT_REMOTE_END_MARK_SIZE], const char *const *argv);

/* Reads raw stdout, with marks and noise; *got 0: end of file. */
dt_status dt_remote_receive(dt_remote *remote, void *bytes, size_t size, size_t *got,
                            double timeout_seconds, dt_error *err);
/* Appends bytes of stdout to `got`, and searches it for the end mark; count 0: only searches. */
void dt_remote_take(dt_remote *remote, const void *bytes, size_t count);

/* Returns true once when the process has ended; does not wait. *code as in dt_remote_finish. */
bool dt_remote_reap(dt_remote *remote, int *code);

/* Fails with the signal (`code`, negative) that ended the transport's own program. */
dt_status dt_remote_fail_local(const dt_remote *remote, int code, dt_error *err);

/* Returns true for a message of a shell or program that could not start a process. */
bool dt_remote_lacks_processes(const char *text);

/* Returns the end of stderr as a C string. */
void dt_remote_read_problems(const dt_remote *remote, char *out, size_t size);

/* Writes why a command failed, never empty: its last message (dt_remote_last_words of `text`), or how it ended if it wrote
 * nothing. `code` as in dt_remote_finish. Returns `out`. */
#define DT_REMOTE_REASON_BYTES 400
const char *dt_remote_reason(char out[DT_REMOTE_REASON_BYTES], const dt_remote *remote, char *text,
                             int code);

/* Returns the last line of `text` that is not empty and not from the transport, without control characters. Changes
 * `text`. */
const char *dt_remote_last_words(const dt_remote *remote, char *text);

#endif
