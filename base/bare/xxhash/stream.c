/* XXH3, 128 bits, of a stream: eight accumulators, stripes of 64 bytes, blocks of 16 stripes.
 *
 * The last stripe ends with the input and may overlap the one before it, so bytes are taken from
 * the buffer only when more of them follow, and what was taken stays where it is: a part of it may
 * yet belong to the last stripe.
 */
#include <stdlib.h>

#include "base/bare/xxhash/xxhash_int.h"

#include "base/banned.h"

#define STRIPE_BYTES  64
#define BLOCK_STRIPES ((SECRET_BYTES - STRIPE_BYTES) / 8)
#define BUFFER_BYTES  256 /* whole stripes, a block a whole number of it, over SHORT_BYTES */

typedef struct accumulators {
    uint64_t lane[8];
    size_t stripes; /* of this block */
} accumulators;

struct XXH3_state_s {
    accumulators acc;
    unsigned char buffer[BUFFER_BYTES];
    size_t buffered;
    uint64_t total;
};

const unsigned char dt_xxh3_secret[SECRET_BYTES] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static void accumulate(uint64_t lane[8], const unsigned char *stripe, size_t offset)
{
    for (size_t i = 0; i < 8; i++) {
        uint64_t word = read64(stripe + 8 * i),
                 keyed = word ^ read64(dt_xxh3_secret + offset + 8 * i);

        lane[i ^ 1] += word;
        lane[i] += (keyed & UINT32_MAX) * (keyed >> 32);
    }
}

/* A stripe that is not the last; a block ends with its sixteenth. */
static void take_stripe(accumulators *acc, const unsigned char *stripe)
{
    accumulate(acc->lane, stripe, 8 * acc->stripes);
    if (++acc->stripes < BLOCK_STRIPES)
        return;
    acc->stripes = 0;
    for (size_t i = 0; i < 8; i++) {
        acc->lane[i] ^= acc->lane[i] >> 47;
        acc->lane[i] ^= read64(dt_xxh3_secret + SECRET_BYTES - STRIPE_BYTES + 8 * i);
        acc->lane[i] *= PRIME32_1;
    }
}

static uint64_t merge(const uint64_t lane[8], uint64_t start, size_t offset)
{
    const unsigned char *key = dt_xxh3_secret + offset;

    for (size_t i = 0; i < 8; i += 2)
        start +=
            multiply_fold(lane[i] ^ read64(key + 8 * i), lane[i + 1] ^ read64(key + 8 * i + 8));
    return avalanche(start);
}

XXH3_state_t *XXH3_createState(void)
{
    return malloc(sizeof(XXH3_state_t));
}

XXH_errorcode XXH3_freeState(XXH3_state_t *state)
{
    free(state);
    return XXH_OK;
}

XXH_errorcode XXH3_128bits_reset(XXH3_state_t *state)
{
    *state = (XXH3_state_t){.acc.lane = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4,
                                         PRIME32_2, PRIME64_5, PRIME32_1}};
    return XXH_OK;
}

XXH_errorcode XXH3_128bits_update(XXH3_state_t *state, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;

    state->total += length;
    while (length > 0) {
        size_t part;

        if (state->buffered == BUFFER_BYTES) {
            for (size_t at = 0; at < BUFFER_BYTES; at += STRIPE_BYTES)
                take_stripe(&state->acc, state->buffer + at);
            state->buffered = 0;
        }
        part = BUFFER_BYTES - state->buffered < length ? BUFFER_BYTES - state->buffered : length;
        memcpy(state->buffer + state->buffered, from, part);
        state->buffered += part;
        from += part;
        length -= part;
    }
    return XXH_OK;
}

XXH128_hash_t XXH3_128bits_digest(const XXH3_state_t *state)
{
    accumulators acc = state->acc;
    unsigned char last[STRIPE_BYTES];
    size_t before; /* of the last stripe, from what was taken already: the end of the buffer */

    if (state->total <= SHORT_BYTES)
        return dt_xxh3_short(state->buffer, state->total);
    for (size_t at = 0; at + STRIPE_BYTES < state->buffered; at += STRIPE_BYTES)
        take_stripe(&acc, state->buffer + at);
    before = state->buffered < STRIPE_BYTES ? STRIPE_BYTES - state->buffered : 0;
    memcpy(last, state->buffer + BUFFER_BYTES - before, before);
    memcpy(last + before, state->buffer + state->buffered - (STRIPE_BYTES - before),
           STRIPE_BYTES - before);
    accumulate(acc.lane, last, SECRET_BYTES - STRIPE_BYTES - 7);
    return (XXH128_hash_t){
        merge(acc.lane, state->total * PRIME64_1, 11),
        merge(acc.lane, ~(state->total * PRIME64_2), SECRET_BYTES - STRIPE_BYTES - 11)};
}

XXH128_hash_t XXH3_128bits(const void *bytes, size_t length)
{
    XXH3_state_t state;

    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, bytes, length);
    return XXH3_128bits_digest(&state);
}

void XXH128_canonicalFromHash(XXH128_canonical_t *out, XXH128_hash_t hash)
{
    uint64_t high = __builtin_bswap64(hash.high64), low = __builtin_bswap64(hash.low64);

    memcpy(out->digest, &high, sizeof(high));
    memcpy(out->digest + sizeof(high), &low, sizeof(low));
}
