/* comm_int: declares what the transports offer to comm.c and to each other. */
#ifndef DT_ENGINE_COMM_INT_H
#define DT_ENGINE_COMM_INT_H

#include "engine/comm/comm.h"
#include "engine/comm/shm/segment.h"
#include "engine/comm/topology.h"

/* Arguments for opening a communicator, on one rank. */
typedef struct dt_comm_setup {
    struct dt_events *events;
    const char *name;
    dt_group group;
    double timeout_seconds;
    const dt_topology *topology;
} dt_comm_setup;

/* In the functions below, `out` is zeroed except rank and world_size, which count the ranks that
 * the communicator connects: the group, those of one node, or one of each node. */
dt_status dt_comm_open_self(dt_comm *out);

/* Takes the segment of this rank's node, and zeroes *segment. */
dt_status dt_comm_open_shm(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                           dt_error *err);

/* Connect ranks[0 ..< world_size] of the run; the caller is ranks[rank]. All ranks of the run call
 * it, each with ranks that include itself: the rendezvous is global. */
dt_status dt_comm_open_gloo(dt_comm *out, const dt_comm_setup *setup, const int64_t *ranks,
                            dt_error *err);

/* Open shm within the nodes and Gloo between them. Takes the segment of this rank's node. */
dt_status dt_comm_open_nodes(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err);

/* Make the collectives of `comm` publish what they wait for (engine/channel/activity.h). `name`
 * must live as long as the process. */
dt_status dt_comm_trace(dt_comm *comm, const char *name, dt_error *err);

/* Bytes that each rank sends in an all-reduce of `bytes`: every share except its own, twice. */
static inline int64_t dt_comm_all_reduce_bytes(int64_t world_size, int64_t bytes)
{
    return 2 * (world_size - 1) * bytes / world_size;
}

#endif
