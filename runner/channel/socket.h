/* socket: listens on or connects to a Unix socket in a folder, however long the folder's path is.
 *
 * The address of a Unix socket holds 107 bytes. Both calls use /proc/self/fd/N of the opened folder, so that a
 * deep state folder works too.
 *
 * Ownership  the caller closes *fd; close-on-exec, and non-blocking (listen) or blocking (connect)
 * Errors     DT_ERR_IO; connect: DT_ERR_NOT_FOUND if nobody listens
 */
#ifndef DT_RUNNER_SOCKET_H
#define DT_RUNNER_SOCKET_H

#include "base/error.h"

/* Mode 0600. Replaces the socket of a dead listener: the caller must hold the lock that proves
 * it dead. */
dt_status dt_socket_listen(int *fd, const char *folder, const char *name, dt_error *err);
dt_status dt_socket_connect(int *fd, const char *folder, const char *name, dt_error *err);

#endif
