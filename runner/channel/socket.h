/* socket: a Unix socket in a folder, however long the folder's path is.
 *
 * The address of a Unix socket holds 107 bytes. Both calls go through /proc/self/fd/N of the
 * opened folder, so that a deep state folder works too.
 *
 * Ownership  *fd is the caller's to close; close-on-exec and non-blocking (listen) or blocking
 * Errors     DT_ERR_IO; from connect DT_ERR_NOT_FOUND where nobody listens
 */
#ifndef DT_RUNNER_SOCKET_H
#define DT_RUNNER_SOCKET_H

#include "base/error.h"

/* Mode 0600. Replaces what a dead listener left: the caller holds the lock that says so. */
dt_status dt_socket_listen(int *fd, const char *folder, const char *name, dt_error *err);
dt_status dt_socket_connect(int *fd, const char *folder, const char *name, dt_error *err);

#endif
