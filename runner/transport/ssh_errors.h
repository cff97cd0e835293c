/* ssh_errors: translates ssh's messages into errors with a remedy.
 *
 * Errors  DT_ERR_PEER: trying again can help, at least after a key, a ticket or a name server is back;
 *         DT_ERR_UNSUPPORTED: the machine's host key has changed
 */
#ifndef DT_RUNNER_TRANSPORT_SSH_ERRORS_H
#define DT_RUNNER_TRANSPORT_SSH_ERRORS_H

#include "base/error.h"
#include "runner/transport/contact.h"

/* `complaint`: all that ssh wrote to stderr, or its end. Always records an error, never DT_OK. Where a jump host or a
 * ProxyCommand is to blame it is named; this asks ssh for its configuration. */
dt_status dt_ssh_error(const char *node, const char *complaint, dt_error *err);

/* True if the server closed the connection at once and gave no reason (transport.h). */
bool dt_ssh_error_is_refusal(const char *complaint);
/* Returns what ssh's message proves about the machine. */
dt_contact dt_ssh_error_contact(const char *complaint);

#endif
