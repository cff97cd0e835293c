/* nccl: collectives between GPUs, one per rank, on GPU memory (NVIDIA NCCL), and the record of the last
 * ones, for hangs.
 *
 * Order      collectives return when they are queued, on a queue of the communicator
 *            (comm.h); all_reduce_f64 and barrier, which use host memory, go through the host's
 *            communicator, which this one owns
 * Hangs      several times a second a thread checks NCCL's state, the collective that has waited longest,
 *            and the processes of this node. If NCCL reports an error, a collective takes longer than
 *            timeout_seconds, or a process of this node has died, it logs the last collectives and
 *            aborts: what is queued ends, and waiters continue. The results are garbage then: finish()
 *            and every later call return an error. Ranks on other nodes notice because NCCL's
 *            connections are closed
 * Interface  that of DTRUN_INTERFACE_ADDRESS, unless NCCL_SOCKET_IFNAME names another
 * Sums       by NCCL: the same from run to run for the same ranks and GPUs
 * Threads    like any communicator
 */
#ifndef DT_ENGINE_COMM_NCCL_NCCL_H
#define DT_ENGINE_COMM_NCCL_NCCL_H

#include "engine/comm/comm_int.h"
#include "engine/device/device_cuda.h"

/* history: records the last collectives of a communicator, to diagnose a hang.
 *
 * Threads  protected by the owner's lock
 */

#define DT_NCCL_HISTORY 32

typedef struct dt_nccl_entry {
    int64_t number; /* number of the collective, from 1; 0: unused entry */
    dt_nccl_kind kind;
    int64_t bytes;
    double queued_at;       /* time by dt_clock_monotonic_seconds */
    dt_device_event *event; /* event recorded after the collective in the queue */
} dt_nccl_entry;

/* Collective i is at i % DT_NCCL_HISTORY; those up to `reached` are done. */
typedef struct dt_nccl_history {
    dt_nccl_entry entries[DT_NCCL_HISTORY];
    int64_t queued, reached;
} dt_nccl_history;

typedef struct dt_nccl_options {
    const dt_nccl_link *link;
    dt_device *device; /* the rank's GPU, borrowed */
    const char *name;
    int64_t rank, world_size;
    double timeout_seconds;
    const dt_peer *peers; /* processes of this node; copied */
    int64_t peer_count;
} dt_nccl_options;

/* Connect the ranks by NCCL. Takes *host, on failure too. */
dt_status dt_nccl_open(dt_comm *out, const dt_nccl_options *options, const uint8_t *id,
                       dt_comm *host, dt_error *err);

/* All ranks of the run call it, each with its device, and get the same result. If every rank has
 * its own GPU and the same NCCL, *out is open and has taken *host. Otherwise *out is zeroed, *host
 * is untouched, and the first rank of each group logs why. */
dt_status dt_nccl_rendezvous(dt_comm *out, const dt_comm_setup *setup, dt_device *device,
                             dt_comm *host, dt_error *err);

#endif
