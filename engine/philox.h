/* philox: generates counter-based random numbers (Salmon et al. 2011, Philox4x32-10).
 *
 * A draw is a pure function of (seed, step, micro-step, data rank, layer, op, index), so that a
 * recomputed pass sees the same numbers and a resumed run needs no saved state. CPU and CUDA use the
 * same arithmetic (DT_PHILOX_FN).
 *
 * Key      seed: 64 bits → the two key words
 * Counter  word 0: index / 4 low, word 1: index / 4 high 16 bits | layer 12 bits | op 4 bits,
 *          word 2: step low 32, word 3: data rank 16 bits | micro-step 16 bits.
 *          The four outputs of one call serve indices 4k .. 4k+3.
 * Clock    an op that is recorded once and run in many steps (engine/device/queue.h) has a key whose step
 *          and micro-step are read from device memory at the time of the draw
 */
#ifndef DT_ENGINE_PHILOX_H
#define DT_ENGINE_PHILOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DT_PHILOX_FN static __host__ __device__ inline
#else
#define DT_PHILOX_FN static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Purpose of a draw: a number per use, so that no two uses share a stream. */
typedef enum dt_philox_op {
    DT_PHILOX_INIT,
    DT_PHILOX_DROPOUT_EMBEDDING,
    DT_PHILOX_DROPOUT_ATTENTION,
    DT_PHILOX_DROPOUT_RESIDUAL,
    DT_PHILOX_DROPOUT_MLP,
    DT_PHILOX_SHUFFLE,
    DT_PHILOX_SAMPLE,
    DT_PHILOX_DROPOUT_CROSS_ATTENTION,
    DT_PHILOX_DROPOUT_CROSS_RESIDUAL,
    DT_PHILOX_DROPOUT_ADAPTER,          /* of the first layer of a block with an adapter */
    DT_PHILOX_DROPOUT_ADAPTER_LAST = 15 /* the field has 4 bits */
} dt_philox_op;

typedef struct dt_philox_clock {
    uint32_t step, micro_step;
} dt_philox_clock;

typedef struct dt_philox_key {
    uint64_t seed;
    uint32_t step, micro_step, data_rank, layer, op;
    const dt_philox_clock *clock; /* NULL, or replaces step and micro_step: see above */
} dt_philox_key;

typedef struct dt_philox_block {
    uint32_t word[4];
} dt_philox_block;

DT_PHILOX_FN void dt_philox_mul(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low)
{
    uint64_t product = (uint64_t)a * b;

    *high = (uint32_t)(product >> 32);
    *low = (uint32_t)product;
}

/* The key with the clock's current step and micro-step. For many draws, call it once. */
DT_PHILOX_FN dt_philox_key dt_philox_now(const dt_philox_key *key)
{
    dt_philox_key now = *key;

    if (key->clock != NULL) {
        now.step = key->clock->step;
        now.micro_step = key->clock->micro_step;
        now.clock = NULL;
    }
    return now;
}

/* The four words of block number `block` (index / 4). */
DT_PHILOX_FN dt_philox_block dt_philox_draw(const dt_philox_key *key, uint64_t block)
{
    dt_philox_key now = dt_philox_now(key);
    uint32_t k0 = (uint32_t)now.seed, k1 = (uint32_t)(now.seed >> 32);
    uint32_t c0 = (uint32_t)block;
    uint32_t c1 = ((uint32_t)(block >> 32) << 16) | ((now.layer & 0xfffu) << 4) | (now.op & 0xfu);
    uint32_t c2 = now.step;
    uint32_t c3 = (now.data_rank << 16) | (now.micro_step & 0xffffu);
    dt_philox_block out;

    for (int round = 0; round < 10; round++) {
        uint32_t h0, l0, h1, l1;

        dt_philox_mul(0xD2511F53u, c0, &h0, &l0);
        dt_philox_mul(0xCD9E8D57u, c2, &h1, &l1);
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out.word[0] = c0;
    out.word[1] = c1;
    out.word[2] = c2;
    out.word[3] = c3;
    return out;
}

/* Convert a word to a number in [0, 1) with 24 bits: exact in fp32. */
DT_PHILOX_FN float dt_philox_uniform(uint32_t word)
{
    return (float)(word >> 8) * 5.9604644775390625e-8f;
}

#ifdef __cplusplus
}
#endif
#endif
