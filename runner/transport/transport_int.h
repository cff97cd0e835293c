/* transport_int: what the files of this folder share: slots for connections that are being opened, ssh's
 * configuration, control sockets and messages, and the parts of a remote command. */
#ifndef DT_RUNNER_TRANSPORT_TRANSPORT_INT_H
#define DT_RUNNER_TRANSPORT_TRANSPORT_INT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/transport/remote.h"
#include "runner/transport/transport.h"

/* connection_slots: limits the connections that all processes of this user are opening at once.
 *
 * sshd refuses more than MaxStartups (10) unauthenticated connections, and a jump host sees those of all nodes. A slot is
 * a flock on one of ten files, so that it is free when its holder dies. A command over an existing connection
 * needs no slot. A new connection releases its slot once it is authenticated: a slow login shell delays no one else.
 */

#define DT_SLOT_COUNT 10

/* Returns the folder of slots and of ssh's control sockets: the first of $XDG_RUNTIME_DIR/dtrun,
 * /tmp/dtrun-UID, /run/user/UID/dtrun and ssh in the cache folder that is private to this user and has a short path,
 * because a socket's path has at most 107 bytes. DT_ERR_IO if there is none. */
dt_status dt_connection_slots_folder(const char **out, dt_arena *arena, dt_error *err);

/* Waits for a slot. The caller closes *fd, which releases the slot. DT_ERR_TIMEOUT; DT_ERR_BUSY: `cancelled` was
 * set. */
dt_status dt_connection_slot_take(int *fd, double timeout_seconds, const atomic_bool *cancelled,
                                  dt_error *err);

/* ssh_config: asks ssh for its configuration of a host (ssh -G), and why it cannot connect to it.
 *
 * Ownership  results live in the arena
 * Threads    any; each call runs ssh, for 12 s at most
 */

#define DT_SSH_JUMPS_MAX 8

/* The hosts, or the command, that a connection to a node passes through. */
typedef struct dt_ssh_way {
    const char *jumps[DT_SSH_JUMPS_MAX]; /* in the order in which a connection passes them */
    int count;
    const char *command; /* a ProxyCommand; NULL: none */
} dt_ssh_way;

/* Finds the jump hosts and the ProxyCommand of a node; none if ssh cannot resolve the node. */
void dt_ssh_way_find(dt_ssh_way *out, const char *node, dt_arena *arena);

/* Replaces `out` with ssh's messages for a connection that is not shared and does not sign in. With a
 * connection that can be shared (ControlPersist) ssh drops the messages of a jump host or a ProxyCommand. */
void dt_ssh_ask_why(dt_strbuf *out, const char *node);

/* ssh_socket: names the control socket of the connection that commands to one node share.
 *
 * ssh's own %C covers host, port and user. Two nodes with the same private address behind different jump hosts
 * have the same %C and would share a connection to one machine. This name covers the node as written, what
 * 'ssh -G' resolves it to, and the same of every jump host.
 */

#define DT_SSH_SOCKET_NAME_BYTES 32 /* hexadecimal digits */

/* Sets *out to the name, in the arena. Runs ssh -G for the node and for each jump host. A configuration that ssh
 * cannot resolve is left out of the name: the connection itself then fails with ssh's message. */
dt_status dt_ssh_socket_name(const char **out, const char *node, dt_arena *arena, dt_error *err);
/* What 'ssh -G' printed counts for five seconds, so that the steps of a preparation do not each ask it; this forgets
 * it. A new connection after a failure does. */
void dt_ssh_forget(void);

/* ssh_errors: translates ssh's messages into errors with a remedy.
 *
 * Errors  DT_ERR_PEER: trying again can help, at least after a key, a ticket or a name server is back;
 *         DT_ERR_UNSUPPORTED: the machine's host key has changed
 */

/* `complaint`: all that ssh wrote to stderr, or its end. Always records an error, never DT_OK. Where a jump host or a
 * ProxyCommand is to blame it is named; this asks ssh for its configuration. */
dt_status dt_ssh_error(const char *node, const char *complaint, dt_error *err);

/* True if the server closed the connection at once and gave no reason (transport.h). */
bool dt_ssh_error_is_refusal(const char *complaint);
/* Returns what ssh's message proves about the machine. */
dt_contact dt_ssh_error_contact(const char *complaint);

/* --- remote.c: from the start of the transport's program until the command runs; closing. remote_talk.c:
 * reading, writing, stderr, and the exit code. */

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

/* Writes why a command failed, never empty: its last message (dt_remote_last_words of `text`), or how it
 * ended if it wrote nothing. `code` as in dt_remote_finish. Returns `out`. */
#define DT_REMOTE_REASON_BYTES 400

/* Returns the last line of `text` that is not empty and not from the transport, without control characters. Changes
 * `text`. */
const char *dt_remote_last_words(const dt_remote *remote, char *text);

#endif
