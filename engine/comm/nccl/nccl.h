/* nccl: collectives between cards, each rank's in memory of its own card (NVIDIA NCCL).
 *
 * Order      collectives return when they are queued, on a queue of the communicator's own
 *            (comm.h); all_reduce_f64 and barrier, which are of the host, go through the host's
 *            communicator, which this one holds
 * Hangs      a thread looks at NCCL's state, at the collective that has waited longest and at the
 *            processes of this node, several times a second. Where NCCL reports an error, a
 *            collective takes longer than timeout_seconds or a process of this node is gone, it
 *            logs the last collectives and aborts: what is queued ends, and whoever waits for it
 *            continues. The contents are garbage then: finish() says so, and so does everything
 *            after it. Ranks of other nodes are told by NCCL, whose connections are closed
 * Interface  the one of DTRUN_INTERFACE_ADDRESS, unless NCCL_SOCKET_IFNAME names another
 * Sums       as NCCL makes them: the same from run to run for the same ranks and cards
 * Threads    as any communicator
 */
#ifndef DT_ENGINE_COMM_NCCL_NCCL_H
#define DT_ENGINE_COMM_NCCL_NCCL_H

#include "engine/comm/comm_int.h"
#include "engine/device/nccl_link.h"

typedef struct dt_nccl_options {
    const dt_nccl_link *link;
    dt_device *device; /* borrowed */
    const char *name;
    int64_t rank, world_size;
    double timeout_seconds;
    const dt_peer *peers; /* processes of this node; copied */
    int64_t peer_count;
} dt_nccl_options;

/* Connects. Takes *host, failing or not. */
dt_status dt_nccl_open(dt_comm *out, const dt_nccl_options *options, const uint8_t *id,
                       dt_comm *host, dt_error *err);

/* All ranks of the run call it with the device that they have, and all get the same answer: *out is
 * open where every rank has a card of its own and the same NCCL, and has taken *host; else *out is
 * zeroed, *host is untouched, and the first of each group logs why. */
dt_status dt_nccl_rendezvous(dt_comm *out, const dt_comm_setup *setup, dt_device *device,
                             dt_comm *host, dt_error *err);

#endif
