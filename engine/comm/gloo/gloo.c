/* gloo: connects CPU ranks over TCP.
 *
 * The sockets bind to the interface whose address is in DTRUN_INTERFACE_ADDRESS (default 127.0.0.1),
 * which must be one of this machine's. Every connection is authenticated before it carries
 * data (proof.h). After an error the communicator is closed, and later calls fail at once
 * with the same code instead of waiting for a timeout.
 */
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/comm/comm_int.h"
#include "engine/comm/gloo/proof.h"
#include "engine/comm/gloo/shim.h"

/* Time limit for a connected rank to authenticate itself. */
#define PROOF_SECONDS 30.0

typedef struct gloo_state {
    dt_gloo *gloo;              /* Gloo's communicator; NULL after an error */
    int64_t run_rank, run_size; /* rank and size within the run, for messages */
} gloo_state;

static dt_status before(dt_comm *comm, dt_error *err)
{
    gloo_state *state = comm->state;

    return state->gloo == NULL ? DT_FAIL(err, DT_ERR_COMM, "the communicator has already failed")
                               : DT_OK;
}

/* On failure, prefix the message with rank and world size, and close all connections, so that ranks
 * without a connection to the lost one notice too. */
static dt_status after(dt_comm *comm, dt_status st, dt_error *err)
{
    gloo_state *state = comm->state;

    if (st != DT_OK) {
        dt_gloo_close(state->gloo);
        state->gloo = NULL;
        dt_error_prefix(err, "rank %lld of %lld", (long long)state->run_rank,
                        (long long)state->run_size);
    }
    return st;
}

/* Bytes sent in a broadcast by a binomial tree: counted from the root, rank v sends to v + 2^k for
 * every 2^k below v's lowest set bit. */
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
    comm->sent_bytes +=
        dt_comm_all_reduce_bytes(comm->world_size, elems * (int64_t)sum->elem_bytes);
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

static const char *interface_address(void)
{
    const char *address = getenv("DTRUN_INTERFACE_ADDRESS");

    return address != NULL && address[0] != '\0' ? address : "127.0.0.1";
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

/* --- authentication, see proof.h */

static dt_status prove(dt_gloo *gloo, const dt_comm *comm, const dt_comm_setup *setup,
                       const int64_t *ranks, dt_error *err)
{
    size_t count = (size_t)comm->world_size;
    uint8_t *given = calloc(count, DT_PROOF_BYTES), *got = calloc(count, DT_PROOF_BYTES);
    uint8_t expected[DT_PROOF_BYTES];
    dt_status st = DT_OK;
    dt_proof_key key;

    if (given == NULL || got == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to authenticate the ranks");
    DT_TRY(dt_proof_key_read(&key, err));
    for (size_t i = 0; i < count; i++)
        dt_proof_make(given + i * DT_PROOF_BYTES, &key, setup, ranks[comm->rank], ranks[i]);
    DT_TRY(dt_gloo_swap(
        gloo, got, given, DT_PROOF_BYTES,
        setup->timeout_seconds < PROOF_SECONDS ? setup->timeout_seconds : PROOF_SECONDS, err));
    for (size_t i = 0; i < count; i++) {
        dt_proof_make(expected, &key, setup, ranks[i], ranks[comm->rank]);
        if (!dt_proof_equal(expected, got + i * DT_PROOF_BYTES))
            DT_THROW(err, DT_ERR_COMM,
                     "communicator '%s': the peer that answers as rank %lld does not know the "
                     "secret of this run: another program has connected to a port of %s; restrict "
                     "access to that network, or choose another one",
                     setup->name, (long long)ranks[i], interface_address());
    }
out:
    free(got);
    free(given);
    return st;
}

/* --- opening and closing */

dt_status dt_comm_open_gloo(dt_comm *out, const dt_comm_setup *setup, const int64_t *ranks,
                            dt_error *err)
{
    dt_gloo_options options = {.events = setup->events,
                               .name = setup->name,
                               .address = interface_address(),
                               .rank = out->rank,
                               .world_size = out->world_size,
                               .ranks = ranks,
                               .timeout_seconds = setup->timeout_seconds};
    gloo_state *state = NULL;
    dt_gloo *gloo = NULL;
    dt_status st = DT_OK;

    if (!is_address_of_this_machine(options.address))
        DT_THROW(err, DT_ERR_USAGE,
                 "DTRUN_INTERFACE_ADDRESS is '%s': expected a numeric address of this machine",
                 options.address);
    signal(SIGPIPE, SIG_IGN);
    DT_TRY(dt_gloo_open(&gloo, &options, err));
    DT_TRY(prove(gloo, out, setup, ranks, err));
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the communicator '%s'", setup->name);
    *state = (gloo_state){gloo, ranks[out->rank], setup->group.world_size};
    gloo = NULL;
    out->name = "gloo";
    out->state = state;
    out->all_reduce = gloo_all_reduce;
    out->all_reduce_f64 = gloo_all_reduce_f64;
    out->reduce_scatter = gloo_reduce_scatter;
    out->all_gather = gloo_all_gather;
    out->broadcast = gloo_broadcast;
    out->barrier = gloo_barrier;
    out->close = gloo_close;
out:
    dt_gloo_close(gloo);
    return st;
}
