/* connection_slots: limits the connections that all processes of this user are opening at once.
 *
 * sshd refuses more than MaxStartups (10) unauthenticated connections, and a jump host sees those of all nodes. A slot is
 * a flock on one of ten files, so that it is free when its holder dies. A command over an existing connection
 * needs no slot. A new connection releases its slot once it is authenticated: a slow login shell delays no one else.
 */
#ifndef DT_RUNNER_TRANSPORT_CONNECTION_SLOTS_H
#define DT_RUNNER_TRANSPORT_CONNECTION_SLOTS_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/error.h"

#define DT_SLOT_COUNT 10

/* Returns the folder of slots and of ssh's control sockets: the first of $XDG_RUNTIME_DIR/dtrun,
 * /tmp/dtrun-UID, /run/user/UID/dtrun and ssh in the cache folder that is private to this user and has a short path,
 * because a socket's path has at most 107 bytes. DT_ERR_IO if there is none. */
dt_status dt_connection_slots_folder(const char **out, dt_arena *arena, dt_error *err);

/* Waits for a slot. The caller closes *fd, which releases the slot. DT_ERR_TIMEOUT; DT_ERR_BUSY: `cancelled` was
 * set. */
dt_status dt_connection_slot_take(int *fd, double timeout_seconds, const atomic_bool *cancelled,
                                  dt_error *err);

#endif
