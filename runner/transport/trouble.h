/* trouble: what ssh complains of, in words that say what to do.
 *
 * Errors  DT_ERR_UNSUPPORTED where only a person can change it (keys, passwords, configuration),
 *         DT_ERR_PEER where trying again may help
 */
#ifndef DT_RUNNER_TROUBLE_H
#define DT_RUNNER_TROUBLE_H

#include "base/error.h"
#include "runner/transport/contact.h"

/* `complaint`: all that ssh wrote to stderr, or its end. Always records an error, never DT_OK. */
dt_status dt_trouble_ssh(const char *node, const char *complaint, dt_error *err);

/* What it proves of the machine. */
dt_contact dt_trouble_contact(const char *complaint);

#endif
