/* client_int: declares helpers for commands that act on a run's supervisor from outside. */
#ifndef DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H
#define DT_RUNNER_SUPERVISOR_CLIENT_CLIENT_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* lock_holder: finds and kills the process that holds a run's supervisor.lock on this machine.
 *
 * A supervisor may be killed at any moment: the next one continues from the store and the agents' journals.
 */

#endif
