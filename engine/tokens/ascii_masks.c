#include "engine/tokens/ascii_masks.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define EACH(byte) ((byte)*0x0101010101010101ull)
#define TOP        EACH(0x80ull)

/* --- eight bytes, which must be ASCII: the top bit of each byte of a result is set if the byte
 * matches */

/* Neither sum carries into the next byte, because both terms are below 0x80. */
static inline uint64_t between(uint64_t bytes, uint64_t first, uint64_t last)
{
    return (bytes + EACH(0x80 - first)) & ~(bytes + EACH(0x7f - last)) & TOP;
}

/* The multiplication moves bit 7 of byte i to bit 56 + i. */
static inline uint64_t pack(uint64_t tops, int at)
{
    return ((tops >> 7) * 0x0102040810204080ull >> 56) << at;
}

void dt_ascii_masks_find_plain(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks found = {0};

    for (int at = 0; at < DT_ASCII_BLOCK; at += 8) {
        uint64_t bytes = 0, high, upper, blank;

        memcpy(&bytes, block + at, 8);
        high = bytes & TOP;
        bytes &= ~TOP;
        upper = between(bytes, 'A', 'Z');
        blank = between(bytes, ' ', ' ');
        found.high |= pack(high, at);
        found.letter |= pack((upper | between(bytes, 'a', 'z')) & ~high, at);
        found.upper |= pack(upper & ~high, at);
        found.number |= pack(between(bytes, '0', '9') & ~high, at);
        found.space |= pack((blank | between(bytes, '\t', '\r')) & ~high, at);
        found.blank |= pack(blank & ~high, at);
        found.line |= pack((between(bytes, '\n', '\n') | between(bytes, '\r', '\r')) & ~high, at);
        found.quote |= pack(between(bytes, '\'', '\'') & ~high, at);
    }
    *out = found;
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

/* The comparison is signed, but a byte that is not ASCII is negative and therefore below `first`. */
AVX2 static inline __m256i between_avx2(__m256i bytes, char first, char last)
{
    return _mm256_and_si256(_mm256_cmpgt_epi8(bytes, _mm256_set1_epi8((char)(first - 1))),
                            _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(last + 1)), bytes));
}

AVX2 static inline __m256i equal_avx2(__m256i bytes, char byte)
{
    return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte));
}

AVX2 static inline uint64_t pack_avx2(__m256i found, int at)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(found) << at;
}

AVX2 static void find_avx2(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks found = {0};

    for (int at = 0; at < DT_ASCII_BLOCK; at += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(block + at));
        __m256i blank = equal_avx2(bytes, ' ');
        __m256i lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));

        found.high |= pack_avx2(bytes, at);
        found.letter |= pack_avx2(between_avx2(lower, 'a', 'z'), at);
        found.upper |= pack_avx2(between_avx2(bytes, 'A', 'Z'), at);
        found.number |= pack_avx2(between_avx2(bytes, '0', '9'), at);
        found.space |= pack_avx2(_mm256_or_si256(blank, between_avx2(bytes, '\t', '\r')), at);
        found.blank |= pack_avx2(blank, at);
        found.line |=
            pack_avx2(_mm256_or_si256(equal_avx2(bytes, '\n'), equal_avx2(bytes, '\r')), at);
        found.quote |= pack_avx2(equal_avx2(bytes, '\''), at);
    }
    *out = found;
}

void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block)
{
    if (__builtin_cpu_supports("avx2"))
        find_avx2(out, block);
    else
        dt_ascii_masks_find_plain(out, block);
}

#else

void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks_find_plain(out, block);
}

#endif
