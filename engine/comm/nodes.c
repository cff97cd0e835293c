/* nodes: connects several ranks on several nodes: shared memory within a node, Gloo between nodes.
 *
 * If all nodes have equally many ranks, rank l of each node connects to the ranks l of the others through
 * Gloo (`across`), so that all links carry a share:
 *   all-reduce      scatter the node's sum, sum each share across, gather it on the node; the remainder
 *                   that does not divide goes through the leads
 *   reduce-scatter  scatter the node's sum for one node after the other, then across
 *   all-gather      across, then on the node, for one node after the other
 * Otherwise, and for small data, only the first rank of each node (the lead) communicates across:
 *   on the node, across, and a broadcast on the node
 *
 * Order  is fixed: first the node's ranks, then the nodes in their ring. The same ranks on the
 *        same nodes give the same bits
 * Sent   the sum of both communicators' counts
 * A failure of one of them ends both, so that it reaches all ranks of all nodes.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/comm_int.h"

typedef struct nodes_state {
    dt_comm local, across;
    int64_t rank, node, node_count;
    int64_t *first; /* first member of each node, and the number of members */
    bool equal;     /* every node has the same number of ranks */
    bool broken;
    char *room; /* buffer between the two communicators; grows */
    size_t room_bytes;
} nodes_state;

static bool is_lead(const nodes_state *s)
{
    return s->local.rank == 0;
}

static dt_status before(const nodes_state *s, dt_error *err)
{
    return s->broken ? DT_FAIL(err, DT_ERR_COMM, "the communicator has already failed") : DT_OK;
}

static dt_status after(dt_comm *comm, dt_status st)
{
    nodes_state *s = comm->state;

    if (st != DT_OK && !s->broken) {
        s->broken = true;
        dt_comm_close(&s->local);
        dt_comm_close(&s->across);
    }
    if (!s->broken)
        comm->sent_bytes = s->local.sent_bytes + s->across.sent_bytes;
    return st;
}

static dt_status need_room(nodes_state *s, size_t bytes, dt_error *err)
{
    if (bytes <= s->room_bytes)
        return DT_OK;
    free(s->room);
    s->room = malloc(bytes);
    s->room_bytes = s->room != NULL ? bytes : 0;
    return s->room != NULL
               ? DT_OK
               : DT_FAIL(err, DT_ERR_NOMEM, "no memory for a %zu-byte buffer between nodes", bytes);
}

/* --- all-reduce */

static dt_status all_reduce_by_leads(nodes_state *s, char *data, int64_t elems, dt_dtype dtype,
                                     dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(s->local.all_reduce(&s->local, data, elems, dtype, err));
    if (is_lead(s))
        DT_TRY(s->across.all_reduce(&s->across, data, elems, dtype, err));
    DT_TRY(s->local.broadcast(&s->local, data, (size_t)elems * dt_dtype_bytes(dtype), 0, err));
out:
    return st;
}

static dt_status all_reduce(nodes_state *s, char *data, int64_t elems, dt_dtype dtype,
                            dt_error *err)
{
    int64_t share = s->equal ? elems / s->local.world_size : 0;
    size_t share_bytes = (size_t)share * dt_dtype_bytes(dtype);
    char *own = data + (size_t)s->local.rank * share_bytes;
    char *rest = data + (size_t)s->local.world_size * share_bytes;
    int64_t rest_elems = elems - share * s->local.world_size;
    dt_status st = DT_OK;

    if (share > 0) {
        DT_TRY(s->local.reduce_scatter(&s->local, own, data, share, dtype, err));
        DT_TRY(s->across.all_reduce(&s->across, own, share, dtype, err));
        DT_TRY(s->local.all_gather(&s->local, data, own, share_bytes, err));
    }
    if (rest_elems > 0)
        DT_TRY(all_reduce_by_leads(s, rest, rest_elems, dtype, err));
out:
    return st;
}

static dt_status nodes_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                  dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(before(comm->state, err));
    DT_TRY(all_reduce(comm->state, data, elems, dtype, err));
out:
    return after(comm, st);
}

static dt_status nodes_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    nodes_state *s = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(s, err));
    DT_TRY(s->local.all_reduce_f64(&s->local, data, elems, err));
    if (is_lead(s))
        DT_TRY(s->across.all_reduce_f64(&s->across, data, elems, err));
    DT_TRY(s->local.broadcast(&s->local, data, (size_t)elems * sizeof(*data), 0, err));
out:
    return after(comm, st);
}

/* --- reduce-scatter */

static dt_status reduce_scatter(nodes_state *s, char *out, const char *in, int64_t elems,
                                dt_dtype dtype, dt_error *err)
{
    size_t bytes = (size_t)elems * dt_dtype_bytes(dtype);
    dt_status st = DT_OK;

    DT_TRY(need_room(s, (size_t)s->node_count * bytes, err));
    for (int64_t n = 0; n < s->node_count; n++)
        DT_TRY(s->local.reduce_scatter(&s->local, s->room + (size_t)n * bytes,
                                       in + (size_t)s->first[n] * bytes, elems, dtype, err));
    DT_TRY(s->across.reduce_scatter(&s->across, out, s->room, elems, dtype, err));
out:
    return st;
}

static dt_status reduce_scatter_by_leads(nodes_state *s, char *out, const char *in, int64_t elems,
                                         dt_dtype dtype, dt_error *err)
{
    int64_t world_size = s->first[s->node_count];
    size_t bytes = (size_t)elems * dt_dtype_bytes(dtype);
    dt_status st = DT_OK;

    DT_TRY(need_room(s, (size_t)world_size * bytes, err));
    memcpy(s->room, in, (size_t)world_size * bytes);
    DT_TRY(all_reduce_by_leads(s, s->room, world_size * elems, dtype, err));
    memcpy(out, s->room + (size_t)s->rank * bytes, bytes);
out:
    return st;
}

static dt_status nodes_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                      dt_dtype dtype, dt_error *err)
{
    nodes_state *s = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(s, err));
    if (elems == 0)
        return DT_OK;
    DT_TRY(s->equal ? reduce_scatter(s, out, in, elems, dtype, err)
                    : reduce_scatter_by_leads(s, out, in, elems, dtype, err));
out:
    return after(comm, st);
}

/* --- all-gather */

static dt_status all_gather(nodes_state *s, char *out, const char *in, size_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(need_room(s, (size_t)s->node_count * bytes, err));
    DT_TRY(s->across.all_gather(&s->across, s->room, in, bytes, err));
    for (int64_t n = 0; n < s->node_count; n++)
        DT_TRY(s->local.all_gather(&s->local, out + (size_t)s->first[n] * bytes,
                                   s->room + (size_t)n * bytes, bytes, err));
out:
    return st;
}

static dt_status all_gather_by_leads(nodes_state *s, char *out, const char *in, size_t bytes,
                                     dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(s->local.all_gather(&s->local, out + (size_t)s->first[s->node] * bytes, in, bytes, err));
    for (int64_t n = 0; n < s->node_count && is_lead(s); n++)
        DT_TRY(s->across.broadcast(&s->across, out + (size_t)s->first[n] * bytes,
                                   (size_t)(s->first[n + 1] - s->first[n]) * bytes, n, err));
    DT_TRY(s->local.broadcast(&s->local, out, (size_t)s->first[s->node_count] * bytes, 0, err));
out:
    return st;
}

static dt_status nodes_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                  dt_error *err)
{
    nodes_state *s = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(s, err));
    if (bytes == 0)
        return DT_OK;
    DT_TRY(s->equal ? all_gather(s, out, in, bytes, err)
                    : all_gather_by_leads(s, out, in, bytes, err));
out:
    return after(comm, st);
}

/* --- broadcast and barrier */

static int64_t node_of(const nodes_state *s, int64_t rank)
{
    int64_t node = 0;

    while (s->first[node + 1] <= rank)
        node++;
    return node;
}

/* On the root's node, then across, then on the other nodes. */
static dt_status nodes_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                 dt_error *err)
{
    nodes_state *s = comm->state;
    int64_t from = node_of(s, root);
    dt_status st = DT_OK;

    DT_ASSERT(root >= 0 && root < comm->world_size);
    DT_TRY(before(s, err));
    if (s->node == from)
        DT_TRY(s->local.broadcast(&s->local, data, bytes, root - s->first[from], err));
    if (is_lead(s))
        DT_TRY(s->across.broadcast(&s->across, data, bytes, from, err));
    if (s->node != from)
        DT_TRY(s->local.broadcast(&s->local, data, bytes, 0, err));
out:
    return after(comm, st);
}

static dt_status nodes_barrier(dt_comm *comm, dt_error *err)
{
    nodes_state *s = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(s, err));
    DT_TRY(s->local.barrier(&s->local, err));
    if (is_lead(s))
        DT_TRY(s->across.barrier(&s->across, err));
    DT_TRY(s->local.barrier(&s->local, err));
out:
    return after(comm, st);
}

/* --- opening and closing */

static void nodes_close(dt_comm *comm)
{
    nodes_state *s = comm->state;

    dt_comm_close(&s->local);
    dt_comm_close(&s->across);
    free(s->first);
    free(s->room);
    free(s);
}

static dt_status open_local(nodes_state *s, const dt_comm_setup *setup, dt_segment *segment,
                            dt_error *err)
{
    s->local.rank = s->rank - s->first[s->node];
    s->local.world_size = dt_topology_members(setup->topology);
    if (s->local.world_size == 1)
        return dt_comm_open_self(&s->local);
    return dt_comm_open_shm(&s->local, setup, segment, err);
}

/* A rank that never communicates across opens a communicator of itself: all ranks must take part in
 * the rendezvous. */
static dt_status open_across(nodes_state *s, const dt_comm_setup *setup, dt_error *err)
{
    bool crosses = s->equal || is_lead(s);
    int64_t *ranks = malloc((size_t)s->node_count * sizeof(*ranks));
    dt_status st;

    if (ranks == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a group of ranks");
    for (int64_t n = 0; n < s->node_count; n++)
        ranks[n] = dt_group_rank(&setup->group, s->first[n] + s->local.rank);
    if (!crosses)
        ranks[0] = dt_group_rank(&setup->group, s->rank);
    s->across.rank = crosses ? s->node : 0;
    s->across.world_size = crosses ? s->node_count : 1;
    st = dt_comm_open_gloo(&s->across, setup, ranks, err);
    free(ranks);
    return st;
}

dt_status dt_comm_open_nodes(dt_comm *out, const dt_comm_setup *setup, dt_segment *segment,
                             dt_error *err)
{
    const dt_topology *topology = setup->topology;
    nodes_state *s = calloc(1, sizeof(*s));
    size_t first_bytes = (size_t)(topology->node_count + 1) * sizeof(*s->first);
    dt_status st = DT_OK;

    out->name = "nodes";
    out->state = s;
    out->close = nodes_close;
    if (s != NULL)
        s->first = malloc(first_bytes);
    if (s == NULL || s->first == NULL) {
        free(s);
        memset(out, 0, sizeof(*out));
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a communicator");
    }
    s->rank = setup->group.rank;
    s->node = topology->node;
    s->node_count = topology->node_count;
    memcpy(s->first, topology->first, first_bytes);
    s->equal = true;
    for (int64_t n = 1; n <= s->node_count; n++)
        s->equal = s->equal && s->first[n] == n * s->first[1];
    DT_TRY(open_local(s, setup, segment, err));
    DT_TRY(open_across(s, setup, err));
    out->all_reduce = nodes_all_reduce;
    out->all_reduce_f64 = nodes_all_reduce_f64;
    out->reduce_scatter = nodes_reduce_scatter;
    out->all_gather = nodes_all_gather;
    out->broadcast = nodes_broadcast;
    out->barrier = nodes_barrier;
out:
    if (st != DT_OK)
        dt_comm_close(out);
    return st;
}
