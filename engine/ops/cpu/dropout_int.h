/* dropout_int: decides which elements dropout keeps. Element i is kept if the uniform number of
 * Philox word i is >= p; kept elements are scaled by 1/(1-p).
 *
 * Lanes      on x86 as many blocks of Philox are drawn at once as a register has lanes of 64 bits: compilers do
 *            not find the instruction for products of 32 by 32 bits in a loop over dt_philox_draw()
 */
#ifndef DT_ENGINE_OPS_CPU_DROPOUT_INT_H
#define DT_ENGINE_OPS_CPU_DROPOUT_INT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/error.h"
#include "engine/philox.h"

typedef struct dt_dropout {
    dt_philox_key key;
    float threshold, scale; /* p, 1/(1-p); p = 0 keeps all and needs no key */
} dt_dropout;

static inline dt_dropout dt_dropout_of(double p, const dt_philox_key *key)
{
    dt_dropout d = {.threshold = (float)p, .scale = (float)(1.0 / (1.0 - p))};

    DT_ASSERT(p >= 0.0 && p < 1.0 && (p == 0.0 || key != NULL));
    if (p > 0.0)
        d.key = dt_philox_now(key);
    return d;
}

#if defined(__x86_64__)

/* EVEN: lane 0 of two vectors, then lane 2 of both, and so on. ODD: lanes 1, 3, ... */
#if defined(__AVX512F__)
#define DT_DROPOUT_LANES 8
#define DT_DROPOUT_EVEN  0, 8, 2, 10, 4, 12, 6, 14
#define DT_DROPOUT_ODD   1, 9, 3, 11, 5, 13, 7, 15
#elif defined(__AVX2__)
#define DT_DROPOUT_LANES 4
#define DT_DROPOUT_EVEN  0, 4, 2, 6
#define DT_DROPOUT_ODD   1, 5, 3, 7
#else
#define DT_DROPOUT_LANES 2
#define DT_DROPOUT_EVEN  0, 2
#define DT_DROPOUT_ODD   1, 3
#endif

/* A word of each block, in the lower half of its lane. The upper half is arbitrary. */
typedef uint64_t dt_dropout_lanes __attribute__((vector_size(8 * DT_DROPOUT_LANES)));
typedef int32_t dt_dropout_ints __attribute__((vector_size(8 * DT_DROPOUT_LANES)));
typedef uint32_t dt_dropout_words __attribute__((vector_size(8 * DT_DROPOUT_LANES)));
typedef float dt_dropout_uniforms __attribute__((vector_size(8 * DT_DROPOUT_LANES)));

static inline dt_dropout_lanes dt_dropout_multiply(dt_dropout_lanes a, uint64_t b)
{
    const dt_dropout_lanes factor = (dt_dropout_lanes){0} + b;

#if defined(__AVX512F__)
    return (dt_dropout_lanes)_mm512_mul_epu32((__m512i)a, (__m512i)factor);
#elif defined(__AVX2__)
    return (dt_dropout_lanes)_mm256_mul_epu32((__m256i)a, (__m256i)factor);
#else
    return (dt_dropout_lanes)_mm_mul_epu32((__m128i)a, (__m128i)factor);
#endif
}

/* Writes the uniform numbers of words 0 to 3 of half of the blocks. */
static inline void dt_dropout_store(float *out, dt_dropout_lanes blocks)
{
    dt_dropout_words words = (dt_dropout_words)blocks >> 8;
    dt_dropout_uniforms uniforms =
        __builtin_convertvector((dt_dropout_ints)words, dt_dropout_uniforms) *
        5.9604644775390625e-8f;

    memcpy(out, &uniforms, sizeof uniforms);
}

/* dt_philox_draw() and dt_philox_uniform() for DT_DROPOUT_LANES blocks. */
static inline void dt_dropout_blocks(float *out, const dt_philox_key *key, uint64_t first)
{
    const uint64_t lower = 0xffffffffu;
    uint64_t k0 = key->seed & lower, k1 = key->seed >> 32;
    dt_dropout_lanes c0, c1, c2, c3;

    /* neighbouring lanes are one half of the blocks apart, so that shuffles within 128 bits order the output */
    for (int l = 0; l < DT_DROPOUT_LANES; l++)
        c0[l] = first + (uint64_t)(l % 2 * (DT_DROPOUT_LANES / 2) + l / 2);
    c1 = (c0 >> 32 << 16) | ((key->layer & 0xfffu) << 4) | (key->op & 0xfu);
    c2 = (dt_dropout_lanes){0} + key->step;
    c3 = (dt_dropout_lanes){0} + ((key->data_rank << 16) | (key->micro_step & 0xffffu));
    for (int round = 0; round < 10; round++) {
        dt_dropout_lanes left = dt_dropout_multiply(c0, 0xD2511F53u);
        dt_dropout_lanes right = dt_dropout_multiply(c2, 0xCD9E8D57u);

        c0 = right >> 32 ^ c1 ^ k0;
        c2 = left >> 32 ^ c3 ^ k1;
        c1 = right;
        c3 = left;
        k0 = (k0 + 0x9E3779B9u) & lower;
        k1 = (k1 + 0xBB67AE85u) & lower;
    }
    c0 = (c0 & lower) | c1 << 32;
    c2 = (c2 & lower) | c3 << 32;
    dt_dropout_store(out, __builtin_shufflevector(c0, c2, DT_DROPOUT_EVEN));
    dt_dropout_store(out + 2 * DT_DROPOUT_LANES, __builtin_shufflevector(c0, c2, DT_DROPOUT_ODD));
}

#else

#define DT_DROPOUT_LANES 1

static inline void dt_dropout_blocks(float *out, const dt_philox_key *key, uint64_t first)
{
    dt_philox_block block = dt_philox_draw(key, first);

    for (int i = 0; i < 4; i++)
        out[i] = dt_philox_uniform(block.word[i]);
}

#endif

/* Returns the number of floats that dt_dropout_draw() writes for n elements, or more. */
static inline int64_t dt_dropout_floats(int64_t n)
{
    return n + 4 + 4 * DT_DROPOUT_LANES;
}

/* Returns the uniform numbers of elements start .. start+n-1: a pointer into `scratch`, not always
 * to its beginning, because numbers are drawn four at a time. */
static inline const float *dt_dropout_draw(const dt_dropout *d, int64_t start, int64_t n,
                                           float *scratch)
{
    uint64_t first = (uint64_t)start / 4;
    int64_t blocks = (start % 4 + n + 3) / 4;

    for (int64_t b = 0; b < blocks; b += DT_DROPOUT_LANES)
        dt_dropout_blocks(scratch + 4 * b, &d->key, first + (uint64_t)b);
    return scratch + start % 4;
}

#endif
