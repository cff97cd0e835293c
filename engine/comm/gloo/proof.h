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
    size_t length; /* bytes of the key; 0: no secret */
} dt_proof_key;

/* Read the secret from the environment. DT_ERR_USAGE if it is not hex; the message does not contain
 * it. */
dt_status dt_proof_key_read(dt_proof_key *out, dt_error *err);
/* out: DT_PROOF_BYTES. from, to: ranks of the run. */
void dt_proof_make(uint8_t *out, const dt_proof_key *key, const dt_comm_setup *setup, int64_t from,
                   int64_t to);
/* Compare two proofs in constant time. */
bool dt_proof_equal(const uint8_t *a, const uint8_t *b);

#endif
