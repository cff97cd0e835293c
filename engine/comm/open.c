/* open: selects and opens the transports for a group, by where its ranks are. */
#include "engine/comm/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/comm/comm_int.h"

#ifdef DT_HAVE_GLOO
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    int64_t *ranks = malloc((size_t)setup->group.size * sizeof(*ranks));
    dt_status st;

    if (ranks == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a group of ranks");
    for (int64_t m = 0; m < setup->group.size; m++)
        ranks[m] = dt_group_rank(&setup->group, m);
    st = dt_comm_open_gloo(out, setup, ranks, err);
    free(ranks);
    return st;
}

/* Take part in the rendezvous of other groups of the run that span nodes. */
static dt_status let_others_meet(const dt_comm_setup *setup, dt_error *err)
{
    int64_t own = dt_group_rank(&setup->group, setup->group.rank);
    dt_comm alone = {.rank = 0, .world_size = 1};
    dt_status st = dt_comm_open_gloo(&alone, setup, &own, err);

    dt_comm_close(&alone);
    return st;
}

/* Open a communicator whose ranks of each node share a segment. */
static dt_status open_shared(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err)
{
    dt_status st = DT_OK;

    if (setup->topology->node_count > 1)
        return dt_comm_open_nodes(out, setup, segment, err);
    if (setup->topology->some_cross)
        DT_TRY(let_others_meet(setup, err));
    DT_TRY(dt_comm_open_shm(out, setup, segment, err));
out:
    return st;
}
#else
static dt_status open_gloo_for_all(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "cannot connect %lld ranks that share no memory: this dtrun-engine was built "
                   "without Gloo (install libgloo-dev and build again)",
                   (long long)setup->group.size);
}

static dt_status open_shared(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err)
{
    return setup->topology->some_cross ? open_gloo_for_all(out, setup, err)
                                       : dt_comm_open_shm(out, setup, segment, err);
}
#endif

/* Choose the transport. Every choice is made for the whole run, because all ranks take part in the
 * same rendezvous. */
static dt_status open_by_place(dt_comm *out, const dt_comm_setup *setup, dt_error *err)
{
    const dt_topology *topology = setup->topology;
    bool shared = false;
    dt_segment segment = {0};
    dt_status st = DT_OK;

    if (topology->some_share)
        DT_TRY(dt_topology_map_segment(&shared, &segment, setup, err));
    if (shared)
        DT_TRY(open_shared(out, setup, &segment, err));
    else
        DT_TRY(open_gloo_for_all(out, setup, err));
    if (setup->group.rank == 0)
        dt_log_info("communicator '%s': %lld ranks on %lld node(s), through %s", setup->name,
                    (long long)setup->group.size, (long long)topology->node_count, out->name);
out:
    dt_segment_close(&segment);
    return st;
}

dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, dt_group group,
                       double timeout_seconds, dt_error *err)
{
    dt_topology topology = {0};
    dt_comm_setup setup = {.events = events,
                           .name = name,
                           .group = group,
                           .timeout_seconds = timeout_seconds,
                           .topology = &topology};
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_ASSERT(group.size >= 1 && group.rank >= 0 && group.rank < group.size);
    out->rank = group.rank;
    out->world_size = group.size;
    if (group.size == 1)
        return dt_comm_open_self(out);
    DT_TRY(dt_topology_find(&topology, &setup, err));
    DT_TRY(open_by_place(out, &setup, err));
    st = dt_comm_trace(out, name, err);
    if (st != DT_OK)
        dt_comm_close(out);
out:
    dt_topology_release(&topology);
    if (st != DT_OK) {
        memset(out, 0, sizeof(*out));
        dt_error_prefix(err, "rank %lld of %lld", (long long)dt_group_rank(&group, group.rank),
                        (long long)group.world_size);
    }
    return st;
}
