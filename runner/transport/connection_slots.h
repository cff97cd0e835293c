/* connection_slots: how many connections are being opened at once, over all processes of this user.
 *
 * sshd refuses more than MaxStartups (10) connections that are not yet let in, and a jump host sees
 * those of all nodes. A slot is a flock on one of ten files: it is free again when its holder
 * dies. A command over a connection that stands needs none, and one that opens a connection gives its slot back once
 * it has been let in: the login shell's files may take long, and hold up nobody else.
 */
#ifndef DT_RUNNER_TRANSPORT_CONNECTION_SLOTS_H
#define DT_RUNNER_TRANSPORT_CONNECTION_SLOTS_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/error.h"

#define DT_SLOT_COUNT 10

/* The folder of slots and of ssh's control sockets: $XDG_RUNTIME_DIR/dtrun, else /tmp/dtrun-UID;
 * short, because a socket's path may have 107 bytes; ours alone, or DT_ERR_IO. */
dt_status dt_connection_slots_folder(const char **out, dt_arena *arena, dt_error *err);

/* Waits for one; *fd is the caller's to close, which gives it back. DT_ERR_TIMEOUT, DT_ERR_BUSY
 * where `cancelled` was set. */
dt_status dt_connection_slot_take(int *fd, double timeout_seconds, const atomic_bool *cancelled,
                                  dt_error *err);

#endif
