#include "engine/comm/gloo/proof.h"

#include <stdlib.h>
#include <string.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

dt_status dt_proof_key_read(dt_proof_key *out, dt_error *err)
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

void dt_proof_make(uint8_t *out, const dt_proof_key *key, const dt_comm_setup *setup, int64_t from,
                   int64_t to)
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

bool dt_proof_equal(const uint8_t *a, const uint8_t *b)
{
    return memeql_sec(a, b, DT_PROOF_BYTES) != 0;
}
