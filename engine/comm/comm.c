#include "engine/comm/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/comm/comm_int.h"

#include "base/banned.h"

#ifdef DT_HAVE_GLOO
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    int64_t *group = malloc((size_t)setup->world_size * sizeof(*group));
    dt_status st;

    if (group == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a group of ranks");
    for (int64_t rank = 0; rank < setup->world_size; rank++)
        group[rank] = rank;
    st = dt_comm_open_gloo(out, setup, group, err);
    free(group);
    return st;
}
#else
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "cannot connect %lld ranks that share no memory: this dtrun-engine was built "
                   "without Gloo (install libgloo-dev and build again)",
                   (long long)setup->world_size);
}
#endif

static dt_status open_shm(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                          dt_error *err)
{
    dt_peer peers[DT_SEGMENT_MEMBERS_MAX];

    dt_place_peers(peers, setup->place);
    return dt_comm_open_shm(out, segment, peers, 0, setup->timeout_seconds, err);
}

static dt_status open_by_place(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    bool shared = false;
    dt_segment segment = {0};
    dt_status st = DT_OK;

    /* A node for each rank: nobody has anything to share. */
    if (setup->place->node_count < setup->world_size)
        DT_TRY(dt_place_share(&shared, &segment, setup, err));
    if (shared && setup->place->node_count == 1)
        DT_TRY(open_shm(out, setup, &segment, err));
#ifdef DT_HAVE_GLOO
    else if (shared)
        DT_TRY(dt_comm_open_nodes(out, setup, &segment, err));
#endif
    else
        DT_TRY(open_gloo_for_all(out, setup, err));
    if (setup->rank == 0)
        dt_log_info("communicator '%s': %lld ranks on %lld node(s), through %s", setup->name,
                    (long long)setup->world_size, (long long)setup->place->node_count, out->name);
out:
    dt_segment_close(&segment);
    return st;
}

dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, int64_t rank,
                       int64_t world_size, double timeout_seconds, dt_error *err)
{
    dt_place place = {0};
    dt_comm_setup setup = {.events = events,
                           .name = name,
                           .rank = rank,
                           .world_size = world_size,
                           .timeout_seconds = timeout_seconds,
                           .place = &place};
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_ASSERT(world_size >= 1 && rank >= 0 && rank < world_size);
    out->rank = rank;
    out->world_size = world_size;
    if (world_size == 1)
        return dt_comm_open_self(out);
    DT_TRY(dt_place_find(&place, &setup, err));
    DT_TRY(open_by_place(out, &setup, err));
    st = dt_comm_tell(out, name, err);
    if (st != DT_OK)
        dt_comm_close(out);
out:
    dt_place_release(&place);
    if (st != DT_OK) {
        memset(out, 0, sizeof(*out));
        dt_error_prefix(err, "rank %lld of %lld", (long long)rank, (long long)world_size);
    }
    return st;
}

void dt_comm_close(dt_comm *comm)
{
    if (comm->close != NULL)
        comm->close(comm);
    memset(comm, 0, sizeof(*comm));
}
