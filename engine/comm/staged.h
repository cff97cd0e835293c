/* staged: runs collectives of a device's memory through host memory, by another communicator.
 *
 * Purpose    for ranks that cannot use NCCL: two on one GPU, or no NCCL installed. Slower
 *            than NCCL by the cost of the copies
 * Algorithm  piece by piece: copy from the device to pinned memory, the host's collective, copy back.
 *            The copies have their own queue, concurrent with the ops
 * Sums       by the other communicator, piece by piece
 * Threads    like any communicator; the input must be complete when a collective is called
 */
#ifndef DT_ENGINE_COMM_STAGED_H
#define DT_ENGINE_COMM_STAGED_H

#include "engine/comm/comm.h"
#include "engine/device/device.h"

/* Turn *comm into a communicator for device memory, which owns the original one. On failure *comm
 * is closed. Borrows the device. */
dt_status dt_comm_stage(dt_comm *comm, dt_device *device, dt_error *err);

#endif
