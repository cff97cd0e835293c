/* gloo: connects CPU ranks over TCP, and authenticates each connection before it carries data.
 *
 * The sockets bind to the interface whose address is in DTRUN_INTERFACE_ADDRESS (default 127.0.0.1),
 * which must be one of this machine's. Every connection is authenticated before it carries
 * data. After an error the communicator is closed, and later calls fail at once
 * with the same code instead of waiting for a timeout.
 */
#include <netdb.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/comm/comm_int.h"
#include "engine/comm/gloo/shim.h"

/* proof: authenticates two connected ranks to each other as members of one run.
 *
 * Formula    proof(from, to) = HMAC-SHA256(secret, "dtrun-gloo-1", communicator, from, to,
 *            nonce of from, nonce of to); RFC 2104. The secret is DTRUN_RUN_SECRET (hex), which
 *            only the run's ranks get; without it the key is empty. The nonces are new for
 *            each communicator and come through the rendezvous, by agents and ssh, so a proof
 *            cannot be replayed.
 * When       on both ends of each connection, right after connecting and before any data
 * Protected  without the secret (or, if there is none, the nonces) an attacker cannot take a rank's
 *            place, send it data or receive data from it: one wrong proof, or none within 30 seconds,
 *            ends the communicator with DT_ERR_COMM
 * Not        later traffic is neither encrypted nor signed: an attacker who can read or change packets
 *            between the nodes can read or change what is trained. Also, Gloo parses the headers of
 *            any peer that connects before the proof is requested; it listens, on the chosen interface
 *            only, until each rank's connection has come. So an attacker who reaches the port first can
 *            keep a run from starting. The network between the nodes must be trusted to this extent
 */

#define DT_PROOF_BYTES         32
#define DT_PROOF_KEY_BYTES_MAX 64

typedef struct dt_proof_key {
    uint8_t bytes[DT_PROOF_KEY_BYTES_MAX];
    size_t length; /* bytes of the key; 0: no secret */
} dt_proof_key;

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read the secret from the environment. DT_ERR_USAGE if it is not hex; the message does not contain
 * it. */
static dt_status proof_key_read(dt_proof_key *out, dt_error *err)
{
    const char *text = getenv("DTRUN_RUN_SECRET");
    size_t length = text != NULL ? strlen(text) : 0;

    memset(out, 0, sizeof(*out));
    if (length % 2 != 0 || length / 2 > sizeof(out->bytes) ||
        (length > 0 && strspn(text, "0123456789abcdef") != length))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "DTRUN_RUN_SECRET: expected up to %d hex digits in pairs, in lower case",
                       2 * DT_PROOF_KEY_BYTES_MAX);
    out->length = length / 2;
    for (size_t i = 0; i < out->length; i++)
        out->bytes[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return DT_OK;
}

/* out: DT_PROOF_BYTES. from, to: ranks of the run. */
static void proof_make(uint8_t *out, const dt_proof_key *key, const dt_comm_setup *setup,
                       int64_t from, int64_t to)
{
    static const char domain[] = "dtrun-gloo-1";
    const int64_t ends[] = {from, to};
    struct hmac_sha256_ctx hmac;

    /* Strings include their terminating NUL, so that different inputs never concatenate to the same
     * bytes. */
    hmac_sha256_set_key(&hmac, key->length, key->bytes);
    hmac_sha256_update(&hmac, sizeof(domain), (const uint8_t *)domain);
    hmac_sha256_update(&hmac, strlen(setup->name) + 1, (const uint8_t *)setup->name);
    hmac_sha256_update(&hmac, sizeof(ends), (const uint8_t *)ends);
    for (int i = 0; i < 2; i++)
        hmac_sha256_update(&hmac, DT_HANDSHAKE_NONCE_BYTES,
                           setup->topology->handshakes[ends[i]].nonce);
    hmac_sha256_digest(&hmac, DT_PROOF_BYTES, out);
}

/* Compare two proofs in constant time. */
static bool proof_equal(const uint8_t *a, const uint8_t *b)
{
    return memeql_sec(a, b, DT_PROOF_BYTES) != 0;
}

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

/* --- authentication */

static dt_status prove(dt_gloo *gloo, const dt_comm *comm, const dt_comm_setup *setup,
                       const int64_t *ranks, const dt_proof_key *key, dt_error *err)
{
    size_t count = (size_t)comm->world_size;
    uint8_t *given = calloc(count, DT_PROOF_BYTES), *got = calloc(count, DT_PROOF_BYTES);
    uint8_t expected[DT_PROOF_BYTES];
    dt_status st = DT_OK;

    if (given == NULL || got == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to authenticate the ranks");
    for (size_t i = 0; i < count; i++)
        proof_make(given + i * DT_PROOF_BYTES, key, setup, ranks[comm->rank], ranks[i]);
    DT_TRY(dt_gloo_swap(
        gloo, got, given, DT_PROOF_BYTES,
        setup->timeout_seconds < PROOF_SECONDS ? setup->timeout_seconds : PROOF_SECONDS, err));
    for (size_t i = 0; i < count; i++) {
        proof_make(expected, key, setup, ranks[i], ranks[comm->rank]);
        if (!proof_equal(expected, got + i * DT_PROOF_BYTES))
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
    dt_proof_key key;
    dt_status st = DT_OK;

    DT_TRY(proof_key_read(&key, err)); /* first: the other ranks would wait for one that leaves */
    if (!is_address_of_this_machine(options.address))
        DT_THROW(err, DT_ERR_USAGE,
                 "DTRUN_INTERFACE_ADDRESS is '%s': expected a numeric address of this machine",
                 options.address);
    signal(SIGPIPE, SIG_IGN);
    DT_TRY(dt_gloo_open(&gloo, &options, err));
    DT_TRY(prove(gloo, out, setup, ranks, &key, err));
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
