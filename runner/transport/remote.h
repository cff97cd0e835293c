/* remote: one command on a node, its stdin and stdout as one descriptor.
 *
 * What a login shell prints before the command is skipped, and the command has ended when it says so, even if a program
 * that the login shell has started in the background holds its stdout open; what ssh and the command write to stderr
 * is kept, and is the message where either fails.
 *
 * Ownership  open/close on caller's memory; close kills what still runs
 * Threads    any; one remote, one thread
 * Errors     as the transport tells them (ssh_errors.h), naming the node; DT_ERR_TIMEOUT where the
 *            connection stands and its login shell gets to nothing; DT_ERR_BUSY where `cancelled`
 *            was set
 */
#ifndef DT_RUNNER_REMOTE_H
#define DT_RUNNER_REMOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "runner/transport/transport.h"

#define DT_REMOTE_OPEN_SECONDS 20.0      /* from the start of ssh until the command runs */
#define DT_REMOTE_NOISE_BYTES  (1 << 16) /* what a login shell may print before */

#define DT_REMOTE_END_MARK_SIZE (sizeof(DT_TRANSPORT_END) + DT_TRANSPORT_END_DIGITS)

typedef struct dt_remote {
    const char *node; /* borrowed until close */
    const dt_transport *transport;
    const atomic_bool *cancelled;
    pid_t pid;
    int fd;       /* a socket: read its stdout, write its stdin (MSG_NOSIGNAL) */
    int problems; /* stderr, in memory */

    dt_strbuf got; /* of stdout, not taken yet */
    size_t ready; /* the front of it that dt_remote_read can give: nothing of the mark of the end */
    char end_mark[DT_REMOTE_END_MARK_SIZE]; /* "": there is none */
    bool ended;   /* the mark came: the command has ended, whoever holds its stdout open */
    int end_code; /* with that exit code */
} dt_remote;

/* Runs `words` there; back when the command is about to run. */
dt_status dt_remote_open(dt_remote *out, const char *node, const char *const *words,
                         const atomic_bool *cancelled, dt_error *err);
/* The same over a connection that no other command shares, and that ends with the command. */
dt_status dt_remote_open_apart(dt_remote *out, const char *node, const char *const *words,
                               const atomic_bool *cancelled, dt_error *err);
void dt_remote_close(dt_remote *remote); /* accepts one of zero bytes */

/* From now on commands to the node do not wait behind a connection that is stuck (renew.c). What can
 * not be done, or not within two seconds, is left: a new connection may still be possible. */
void dt_remote_renew(const char *node);

/* Whether dt_remote_read returns at once, without a look at `fd`. */
bool dt_remote_has_read(const dt_remote *remote);
/* Up to `size` bytes; *got 0: the end. DT_ERR_TIMEOUT where none came. */
dt_status dt_remote_read(dt_remote *remote, void *bytes, size_t size, size_t *got,
                         double timeout_seconds, dt_error *err);
/* All of it. A peer that has gone is DT_ERR_PEER: dt_remote_finish knows why. */
dt_status dt_remote_write(dt_remote *remote, const void *bytes, size_t length,
                          double timeout_seconds, dt_error *err);
void dt_remote_write_end(dt_remote *remote); /* end of its stdin */

/* Waits for its end. *code: its exit code, or minus a signal's number, and where it is not 0 the
 * last line of its stderr in `problem` (may be NULL). code NULL: anything but 0 is an error with
 * that line. */
dt_status dt_remote_finish(dt_remote *remote, int *code, dt_error *problem, double timeout_seconds,
                           dt_error *err);

/* The end of what was written to stderr, onto `fd`. */
void dt_remote_print_problems(const dt_remote *remote, int fd);

/* All of these, for short answers: stdin, whole stdout (at most max_bytes), exit code as above. */
dt_status dt_remote_ask(dt_strbuf *answer, const char *node, const char *const *words,
                        const void *input, size_t input_length, size_t max_bytes,
                        double timeout_seconds, int *code, dt_error *problem,
                        const atomic_bool *cancelled, dt_error *err);

#endif
