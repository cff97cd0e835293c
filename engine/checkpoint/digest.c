#include "engine/checkpoint/digest.h"

#include <stdio.h>
#include <xxhash.h>

/* Only this file knows xxHash: a dt_digest is an XXH3_state_t by another name. */

dt_status dt_digest_new(dt_digest **out, dt_error *err)
{
    XXH3_state_t *state = XXH3_createState();

    *out = (dt_digest *)state;
    if (state == NULL || XXH3_128bits_reset(state) != XXH_OK)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a digest");
    return DT_OK;
}

void dt_digest_free(dt_digest *digest)
{
    XXH3_freeState((XXH3_state_t *)digest);
}

void dt_digest_add(dt_digest *digest, const void *bytes, size_t length)
{
    XXH3_128bits_update((XXH3_state_t *)digest, bytes, length);
}

static void to_hex(char *hex, XXH128_hash_t hash)
{
    XXH128_canonical_t bytes;

    XXH128_canonicalFromHash(&bytes, hash);
    for (size_t i = 0; i < sizeof(bytes.digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes.digest[i]);
}

void dt_digest_get(char *hex, const dt_digest *digest)
{
    to_hex(hex, XXH3_128bits_digest((const XXH3_state_t *)digest));
}

uint64_t dt_digest_number(const void *bytes, size_t length)
{
    return XXH3_64bits(bytes, length);
}

void dt_digest_of(char *hex, const void *bytes, size_t length)
{
    to_hex(hex, XXH3_128bits(bytes, length));
}
