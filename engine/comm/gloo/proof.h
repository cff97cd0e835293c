/* proof: how two ranks that are connected show each other that they belong to one run.
 *
 * Formula    proof(from, to) = HMAC-SHA256(secret, "dtrun-gloo-1", communicator, from, to,
 *            nonce of from, nonce of to); RFC 2104. The secret is DTRUN_RUN_SECRET (hex), which
 *            only the run's ranks are given; without it the key is empty. The nonces are new for
 *            each communicator and come by the rendezvous, through agents and ssh, so that a proof
 *            is of no use a second time.
 * When       both ends of each connection, right after it stands and before any data go through
 * Protected  nobody who does not know the secret (or, without one, the nonces) can take a rank's
 *            place, give it data or get data from it: one wrong proof, or none within 30 seconds,
 *            ends the communicator with DT_ERR_COMM
 * Not        what follows is neither encrypted nor signed: whoever can read or change packets
 *            between the nodes can read or change what is trained. And Gloo parses the headers of
 *            whoever connects before the proof is asked for; it listens, on the chosen interface
 *            only, until each rank's connection has come. So who reaches the port first can keep a
 *            run from starting. The network between the nodes has to be one that is trusted so far
 */
#ifndef DT_ENGINE_COMM_GLOO_PROOF_H
#define DT_ENGINE_COMM_GLOO_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/comm/comm_int.h"

#define DT_PROOF_BYTES         32
#define DT_PROOF_KEY_BYTES_MAX 64

typedef struct dt_proof_key {
    uint8_t bytes[DT_PROOF_KEY_BYTES_MAX];
    size_t length; /* 0: there is no secret */
} dt_proof_key;

/* From the environment. DT_ERR_USAGE where it is not hex; the message does not repeat it. */
dt_status dt_proof_key_read(dt_proof_key *out, dt_error *err);
/* out: DT_PROOF_BYTES. from, to: ranks of the run. */
void dt_proof_make(uint8_t *out, const dt_proof_key *key, const dt_comm_setup *setup, int64_t from,
                   int64_t to);
/* In a time that does not depend on where they differ. */
bool dt_proof_equal(const uint8_t *a, const uint8_t *b);

#endif
