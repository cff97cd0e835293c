/* What the long and the short inputs of XXH3 share: the specification's constants and mixing steps,
 * under its names. */
#ifndef DT_BARE_XXHASH_INT_H
#define DT_BARE_XXHASH_INT_H

#include <string.h>

#include "base/bare/xxhash/xxhash.h"

#define PRIME32_1 UINT64_C(0x9E3779B1)
#define PRIME32_2 UINT64_C(0x85EBCA77)
#define PRIME32_3 UINT64_C(0xC2B2AE3D)
#define PRIME64_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME64_3 UINT64_C(0x165667B19E3779F9)
#define PRIME64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME64_5 UINT64_C(0x27D4EB2F165667C5)
#define PRIME_MX1 UINT64_C(0x165667919E3779F9)
#define PRIME_MX2 UINT64_C(0x9FB21C651E98DF25)

#define SECRET_BYTES 192
#define SHORT_BYTES  240 /* longer inputs go through the accumulators */

extern const unsigned char dt_xxh3_secret[SECRET_BYTES];

/* Up to SHORT_BYTES bytes. */
XXH128_hash_t dt_xxh3_short(const unsigned char *input, size_t length);

/* Little-endian, as are the machines that have the cards. */
static inline uint64_t read64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint32_t read32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* Both halves of the product. */
static inline uint64_t multiply(uint64_t *high, uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
}

static inline uint64_t multiply_fold(uint64_t a, uint64_t b)
{
    uint64_t high, low = multiply(&high, a, b);

    return low ^ high;
}

static inline uint64_t avalanche(uint64_t x)
{
    x ^= x >> 37;
    x *= PRIME_MX1;
    return x ^ x >> 32;
}

#endif
