/* remote: runs one command on a node, with its stdin and stdout as one descriptor.
 *
 * Output of the login shell before the command is skipped. The end of the command is recognized by a mark, even if a
 * background program that the login shell started holds stdout open. The stderr of ssh and the command is kept as the
 * message of a failure.
 *
 * Ownership  open/close on the caller's memory; close kills a command that still runs, with what ssh started for it
 * Threads    any; one remote, one thread
 * Errors     the transport's (transport_int.h), naming the node; DT_ERR_TIMEOUT: the command did not start, and the
 *            message says whether the connection was open; DT_ERR_BUSY: `cancelled` was set
 */
#ifndef DT_RUNNER_REMOTE_H
#define DT_RUNNER_REMOTE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/child.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "runner/transport/transport.h"

#define DT_REMOTE_OPEN_SECONDS 20.0      /* from the start of ssh until the command runs */
#define DT_REMOTE_NOISE_BYTES  (1 << 16) /* most output of a login shell before the command */

#define DT_REMOTE_END_MARK_SIZE (sizeof(DT_TRANSPORT_END) + DT_TRANSPORT_END_DIGITS)

typedef struct dt_remote {
    const char *node; /* borrowed until close */
    const dt_transport *transport;
    const atomic_bool *cancelled;
    dt_child child;
    int fd;       /* a socket: read its stdout, write its stdin (MSG_NOSIGNAL) */
    int problems; /* stderr, in memory */

    dt_strbuf got; /* stdout that was received and not read yet */
    size_t ready;  /* bytes at the front of `got` that can be read: all before the end mark */
    char end_mark[DT_REMOTE_END_MARK_SIZE]; /* "": the transport prints none */
    bool connected; /* the command did not start in time, over an open connection */
    bool refused;   /* the server closed the connection before the command ran (transport.h) */
    bool ended;     /* the mark came: the command has ended, though others may hold its stdout */
    int end_code;   /* exit code in the end mark */
} dt_remote;

/* Runs `words` on the node; returns when the command is about to start. */
dt_status dt_remote_open(dt_remote *out, const char *node, const char *const *words,
                         const atomic_bool *cancelled, dt_error *err);
/* As dt_remote_open, over a separate connection, which ends with the command. */
dt_status dt_remote_open_apart(dt_remote *out, const char *node, const char *const *words,
                               const atomic_bool *cancelled, dt_error *err);
void dt_remote_close(dt_remote *remote); /* accepts a zeroed struct */

/* Makes later commands to the node bypass a shared connection that is stuck (connections.c). Gives up
 * silently on failure or after two seconds: a new connection may still be possible. */
void dt_remote_renew(const char *node);

/* Returns true if dt_remote_read has data without reading `fd`. */
bool dt_remote_has_read(const dt_remote *remote);
/* Reads up to `size` bytes of stdout; *got 0: the end. DT_ERR_TIMEOUT: no bytes came. */
dt_status dt_remote_read(dt_remote *remote, void *bytes, size_t size, size_t *got,
                         double timeout_seconds, dt_error *err);
/* Writes all bytes to stdin. DT_ERR_PEER: the command is gone; dt_remote_finish returns the reason. */
dt_status dt_remote_write(dt_remote *remote, const void *bytes, size_t length,
                          double timeout_seconds, dt_error *err);
void dt_remote_write_end(dt_remote *remote); /* end of its stdin */

/* Waits for the end of the command. *code: its exit code, or the negative number of a signal; if not 0, `problem` (may
 * be NULL) gets the last line of its stderr. code NULL: a failed command is an error with that line. */
dt_status dt_remote_finish(dt_remote *remote, int *code, dt_error *problem, double timeout_seconds,
                           dt_error *err);

/* Writes the end of the command's stderr to `fd`. */
void dt_remote_print_problems(const dt_remote *remote, int fd);

/* Runs a command with a short answer in one call: writes its stdin, and reads its whole stdout (at most
 * max_bytes). Exit code as in dt_remote_finish. */
dt_status dt_remote_ask(dt_strbuf *answer, const char *node, const char *const *words,
                        const void *input, size_t input_length, size_t max_bytes,
                        double timeout_seconds, int *code, dt_error *problem,
                        const atomic_bool *cancelled, dt_error *err);

#endif
