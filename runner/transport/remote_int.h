/* remote_int: what the files of one command on a node share.
 *
 *   remote_ask.c       all of it in one call, for short answers
 *   remote.c           from the start of the transport's program until the command runs; closing
 *   remote_talk.c      what is read from it, written to it, and how it ended
 *   remote_problems.c  what was said on stderr
 */
#ifndef DT_RUNNER_REMOTE_INT_H
#define DT_RUNNER_REMOTE_INT_H

#include "base/exit.h"
#include "runner/transport/remote.h"

#define DT_REMOTE_COMPLAINT_BYTES   8192
#define DT_REMOTE_END_SLICE_SECONDS 0.005
#define DT_REMOTE_SSH_FAILED        255 /* the transport's own exit code */

/* Until the descriptor can be read or written (poll's `events`). DT_ERR_BUSY where `cancelled` was set,
 * DT_ERR_TIMEOUT after `deadline` (of dt_clock_monotonic_seconds). */
dt_status dt_remote_wait(dt_remote *remote, short events, double deadline, dt_error *err);

/* The mark of the end that an argv of the transport asks for; "": none. */
void dt_remote_find_end_mark(char out[DT_REMOTE_END_MARK_SIZE], const char *const *argv);

/* What comes next on stdout, whatever it is; *got 0: its end. */
dt_status dt_remote_receive(dt_remote *remote, void *bytes, size_t size, size_t *got,
                            double timeout_seconds, dt_error *err);
/* Takes bytes of stdout into `got`, and looks for the mark of the end there; count 0: only looks. */
void dt_remote_take(dt_remote *remote, const void *bytes, size_t count);

/* Whether the process has ended, without waiting; once. *code as dt_remote_finish has it. */
bool dt_remote_reap(dt_remote *remote, int *code);

/* The end of what was written to stderr, as one C string. */
void dt_remote_read_problems(const dt_remote *remote, char *out, size_t size);

/* Why a command failed, never empty: its last words (dt_remote_last_words of `text`), or how it ended if it wrote
 * nothing. `code` as dt_remote_finish returns it. Returns `out`. */
#define DT_REMOTE_REASON_BYTES 400
const char *dt_remote_reason(char out[DT_REMOTE_REASON_BYTES], const dt_remote *remote, char *text,
                             int code);

/* The last line of `text` (not empty where there is one) that is not the transport's own, without
 * control characters; `text` is changed. */
const char *dt_remote_last_words(const dt_remote *remote, char *text);

#endif
