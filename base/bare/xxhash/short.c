/* XXH3, 128 bits, of up to 240 bytes: a formula for each of six ranges of length. */
#include "base/bare/xxhash/xxhash_int.h"

#include "base/banned.h"

static const unsigned char *const secret = dt_xxh3_secret;

/* Two words of the secret, as one. */
static uint64_t secret64(size_t offset)
{
    return read64(secret + offset) ^ read64(secret + offset + 8);
}

static uint64_t avalanche_xxh64(uint64_t x)
{
    x ^= x >> 33;
    x *= PRIME64_2;
    x ^= x >> 29;
    x *= PRIME64_3;
    return x ^ x >> 32;
}

static XXH128_hash_t hash_none(void)
{
    return (XXH128_hash_t){avalanche_xxh64(secret64(64)), avalanche_xxh64(secret64(80))};
}

static XXH128_hash_t hash_1_to_3(const unsigned char *input, size_t length)
{
    uint32_t combined = input[length - 1] | (uint32_t)length << 8 | (uint32_t)input[0] << 16 |
                        (uint32_t)input[length >> 1] << 24;
    uint32_t swapped = __builtin_bswap32(combined);
    uint64_t low = read32(secret) ^ read32(secret + 4) ^ combined;
    uint64_t high = read32(secret + 8) ^ read32(secret + 12) ^ (swapped << 13 | swapped >> 19);

    return (XXH128_hash_t){avalanche_xxh64(low), avalanche_xxh64(high)};
}

static XXH128_hash_t hash_4_to_8(const unsigned char *input, size_t length)
{
    uint64_t combined = read32(input) | (uint64_t)read32(input + length - 4) << 32;
    uint64_t high, low;

    low = multiply(&high, secret64(16) ^ combined, PRIME64_1 + (length << 2));
    high += low << 1;
    low ^= high >> 3;
    low ^= low >> 35;
    low *= PRIME_MX2;
    low ^= low >> 28;
    return (XXH128_hash_t){low, avalanche(high)};
}

static XXH128_hash_t hash_9_to_16(const unsigned char *input, size_t length)
{
    uint64_t first = read64(input), last = read64(input + length - 8);
    uint64_t one = secret64(32) ^ first ^ last, two = secret64(48) ^ last;
    uint64_t high, low, carry;

    low = multiply(&high, one, PRIME64_1);
    low += (uint64_t)(length - 1) << 54;
    high += two + (two & UINT32_MAX) * (PRIME32_2 - 1);
    low ^= __builtin_bswap64(high);
    low = multiply(&carry, low, PRIME64_2);
    high = carry + high * PRIME64_2;
    return (XXH128_hash_t){avalanche(low), avalanche(high)};
}

/* 17 to 240 bytes: the two halves collect chunks of 16 bytes. */
typedef struct halves {
    uint64_t low, high;
} halves;

static uint64_t mix(const unsigned char *chunk, size_t offset)
{
    return multiply_fold(read64(chunk) ^ read64(secret + offset),
                         read64(chunk + 8) ^ read64(secret + offset + 8));
}

static void mix_two(halves *acc, const unsigned char *one, const unsigned char *two, size_t offset)
{
    acc->low += mix(one, offset);
    acc->high += mix(two, offset + 16);
    acc->low ^= read64(two) + read64(two + 8);
    acc->high ^= read64(one) + read64(one + 8);
}

static XXH128_hash_t finish(halves acc, size_t length)
{
    uint64_t low = acc.low + acc.high;
    uint64_t high = acc.low * PRIME64_1 + acc.high * PRIME64_4 + length * PRIME64_2;

    return (XXH128_hash_t){avalanche(low), 0 - avalanche(high)};
}

/* From both ends towards the middle, the middle first. */
static XXH128_hash_t hash_17_to_128(const unsigned char *input, size_t length)
{
    halves acc = {length * PRIME64_1, 0};

    for (size_t i = (length - 1) / 32 + 1; i-- > 0;)
        mix_two(&acc, input + 16 * i, input + length - 16 * i - 16, 32 * i);
    return finish(acc, length);
}

/* From the start; the last 32 bytes once more, turned around. */
static XXH128_hash_t hash_129_to_240(const unsigned char *input, size_t length)
{
    halves acc = {length * PRIME64_1, 0};

    for (size_t i = 0; i < 4; i++)
        mix_two(&acc, input + 32 * i, input + 32 * i + 16, 32 * i);
    acc = (halves){avalanche(acc.low), avalanche(acc.high)};
    for (size_t i = 4; i < length / 32; i++)
        mix_two(&acc, input + 32 * i, input + 32 * i + 16, 32 * (i - 4) + 3);
    mix_two(&acc, input + length - 16, input + length - 32, 103);
    return finish(acc, length);
}

XXH128_hash_t dt_xxh3_short(const unsigned char *input, size_t length)
{
    if (length == 0)
        return hash_none();
    if (length <= 3)
        return hash_1_to_3(input, length);
    if (length <= 8)
        return hash_4_to_8(input, length);
    if (length <= 16)
        return hash_9_to_16(input, length);
    return length <= 128 ? hash_17_to_128(input, length) : hash_129_to_240(input, length);
}
