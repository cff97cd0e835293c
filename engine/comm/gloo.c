/* gloo: CPU ranks over TCP.
 *
 * The sockets bind to the interface whose address is in DTRUN_INTERFACE_ADDRESS, 127.0.0.1 where
 * it is unset; it must be one of this machine's. After an error the communicator is broken: what
 * follows fails at once with the same code instead of waiting for its timeout.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/comm/comm_int.h"
#include "engine/comm/gloo_shim.h"

#include "base/banned.h"

typedef struct gloo_state {
    dt_gloo *gloo;
    bool broken;
} gloo_state;

static dt_status before(dt_comm *comm, dt_error *err)
{
    gloo_state *state = comm->state;

    return state->broken ? DT_FAIL(err, DT_ERR_COMM, "the communicator has failed before") : DT_OK;
}

/* Rank and world go in front of what Gloo says; a failure is remembered. */
static dt_status after(dt_comm *comm, dt_status st, dt_error *err)
{
    gloo_state *state = comm->state;

    if (st != DT_OK) {
        state->broken = true;
        dt_error_prefix(err, "rank %lld of %lld", (long long)comm->rank,
                        (long long)comm->world_size);
    }
    return st;
}

/* Ring: each rank sends every chunk but one, twice. */
static int64_t ring_bytes(const dt_comm *comm, int64_t bytes)
{
    return 2 * (comm->world_size - 1) * bytes / comm->world_size;
}

/* Binomial tree: counted from the root, rank v hands on to v + 2^k for every 2^k below v's lowest
 * set bit. */
static int64_t tree_bytes(const dt_comm *comm, int64_t root, int64_t bytes)
{
    int64_t place = (comm->rank - root + comm->world_size) % comm->world_size, sent = 0;

    for (int64_t bit = 1; bit < comm->world_size && (place & bit) == 0; bit *= 2)
        if (place + bit < comm->world_size)
            sent += bytes;
    return sent;
}

static dt_status sum_over_ranks(dt_comm *comm, void *data, int64_t elems, const dt_sum *sum,
                                dt_error *err)
{
    gloo_state *state = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(comm, err));
    if (elems == 0)
        return DT_OK;
    DT_TRY(after(comm, dt_gloo_all_reduce(state->gloo, data, (size_t)elems, sum, err), err));
    comm->sent_bytes += ring_bytes(comm, elems * (int64_t)sum->elem_bytes);
out:
    return st;
}

static dt_status gloo_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                 dt_error *err)
{
    return sum_over_ranks(comm, data, elems, dt_sum_of(dtype), err);
}

static dt_status gloo_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    return sum_over_ranks(comm, data, elems, &dt_sum_f64, err);
}

static dt_status gloo_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                     dt_dtype dtype, dt_error *err)
{
    const dt_sum *sum = dt_sum_of(dtype);
    gloo_state *state = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(comm, err));
    if (elems == 0)
        return DT_OK;
    DT_TRY(after(comm, dt_gloo_reduce_scatter(state->gloo, out, in, (size_t)elems, sum, err), err));
    comm->sent_bytes += (comm->world_size - 1) * elems * (int64_t)sum->elem_bytes;
out:
    return st;
}

static dt_status gloo_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                 dt_error *err)
{
    gloo_state *state = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(comm, err));
    if (bytes == 0)
        return DT_OK;
    DT_TRY(after(comm, dt_gloo_all_gather(state->gloo, out, in, bytes, err), err));
    comm->sent_bytes += (comm->world_size - 1) * (int64_t)bytes;
out:
    return st;
}

static dt_status gloo_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                dt_error *err)
{
    gloo_state *state = comm->state;
    dt_status st = DT_OK;

    DT_ASSERT(root >= 0 && root < comm->world_size);
    DT_TRY(before(comm, err));
    if (bytes == 0)
        return DT_OK;
    DT_TRY(after(comm, dt_gloo_broadcast(state->gloo, data, bytes, (int)root, err), err));
    comm->sent_bytes += tree_bytes(comm, root, (int64_t)bytes);
out:
    return st;
}

static dt_status gloo_barrier(dt_comm *comm, dt_error *err)
{
    gloo_state *state = comm->state;
    dt_status st = DT_OK;

    DT_TRY(before(comm, err));
    DT_TRY(after(comm, dt_gloo_barrier(state->gloo, err), err));
out:
    return st;
}

static void gloo_close(dt_comm *comm)
{
    gloo_state *state = comm->state;

    dt_gloo_close(state->gloo);
    free(state);
}

static bool is_address_of_this_machine(const char *address)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
    bool good;
    int fd;

    if (getaddrinfo(address, NULL, &hints, &found) != 0)
        return false;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    good = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return good;
}

dt_status dt_comm_open_gloo(dt_comm *out, struct dt_events *events, const char *name,
                            double timeout_seconds, dt_error *err)
{
    const char *address = getenv("DTRUN_INTERFACE_ADDRESS");
    dt_gloo_options options = {.events = events,
                               .name = name,
                               .address =
                                   address != NULL && address[0] != '\0' ? address : "127.0.0.1",
                               .rank = out->rank,
                               .world_size = out->world_size,
                               .timeout_seconds = timeout_seconds};
    gloo_state *state;
    dt_status st;

    if (!is_address_of_this_machine(options.address))
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "DTRUN_INTERFACE_ADDRESS is '%s': expected a numeric address of this machine",
            options.address);
    signal(SIGPIPE, SIG_IGN);
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the communicator '%s'", name);
    st = dt_gloo_open(&state->gloo, &options, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "rank %lld of %lld", (long long)out->rank, (long long)out->world_size);
        free(state);
        return st;
    }
    out->name = "gloo";
    out->state = state;
    out->all_reduce = gloo_all_reduce;
    out->all_reduce_f64 = gloo_all_reduce_f64;
    out->reduce_scatter = gloo_reduce_scatter;
    out->all_gather = gloo_all_gather;
    out->broadcast = gloo_broadcast;
    out->barrier = gloo_barrier;
    out->close = gloo_close;
    return DT_OK;
}
