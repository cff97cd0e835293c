/* staged: collectives of a device's memory through host memory, by another communicator.
 *
 * Purpose    where ranks have no NCCL between them: two on one card, or cards without it. Slower
 *            than NCCL by what the copies cost
 * Algorithm  piece by piece: out of the device into pinned memory, the host's collective, and back.
 *            The copies have a queue of their own, beside the ops
 * Sums       as the other communicator makes them, piece by piece
 * Threads    as any communicator; what it reads must be there when it is called
 */
#ifndef DT_ENGINE_COMM_STAGED_H
#define DT_ENGINE_COMM_STAGED_H

#include "engine/comm/comm.h"
#include "engine/device/device.h"

/* *comm becomes one of the device's memory, which holds the one that it was. On failure *comm is
 * closed. Borrows the device. */
dt_status dt_comm_stage(dt_comm *comm, dt_device *device, dt_error *err);

#endif
