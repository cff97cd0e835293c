/* comm_int: what the transports offer to comm.c and to each other. */
#ifndef DT_ENGINE_COMM_INT_H
#define DT_ENGINE_COMM_INT_H

#include "engine/comm/comm.h"
#include "engine/comm/shm/segment.h"
#include "engine/comm/topology.h"

/* The communicator to be opened, seen by one rank. */
typedef struct dt_comm_setup {
    struct dt_events *events;
    const char *name;
    dt_group group;
    double timeout_seconds;
    const dt_topology *topology;
} dt_comm_setup;

/* `out` comes zeroed, with rank and world_size, which are those among the ranks that it connects:
 * the group, or those of one node, or one of each node. */
dt_status dt_comm_open_self(dt_comm *out);

/* Takes the segment of this rank's node, which is zeroed. */
dt_status dt_comm_open_shm(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                           dt_error *err);

/* Connects ranks[0 ..< world_size] of the run, of which the caller is ranks[rank]. All ranks of the
 * run call it, each with some that it is among: the rendezvous is everybody's. */
dt_status dt_comm_open_gloo(dt_comm *out, const dt_comm_setup *setup, const int64_t *ranks,
                            dt_error *err);

/* Takes the segment of this rank's node. */
dt_status dt_comm_open_nodes(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err);

/* Collectives of `comm` say on the board what they wait for. name lives as long as the process. */
dt_status dt_comm_trace(dt_comm *comm, const char *name, dt_error *err);

/* Bytes that each rank sends in an all-reduce of `bytes`: every share but its own, twice. */
static inline int64_t dt_comm_all_reduce_bytes(int64_t world_size, int64_t bytes)
{
    return 2 * (world_size - 1) * bytes / world_size;
}

#endif
