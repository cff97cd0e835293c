/* ssh_socket: names the control socket of the connection that commands to one node share.
 *
 * ssh's own %C covers host, port and user. Two nodes with the same private address behind different jump hosts
 * have the same %C and would share a connection to one machine. This name covers the node as written, what
 * 'ssh -G' resolves it to, and the same of every jump host.
 */
#ifndef DT_RUNNER_SSH_SOCKET_H
#define DT_RUNNER_SSH_SOCKET_H

#include "base/arena.h"
#include "base/error.h"

#define DT_SSH_SOCKET_NAME_BYTES 32 /* hexadecimal digits */

/* Sets *out to the name, in the arena. Runs ssh -G for the node and for each jump host. A configuration that ssh
 * cannot resolve is left out of the name: the connection itself then fails with ssh's message. */
dt_status dt_ssh_socket_name(const char **out, const char *node, dt_arena *arena, dt_error *err);

#endif
