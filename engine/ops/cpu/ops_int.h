/* ops_int: what the files compiled per instruction set share: the declarations of the ops, rows of any type
 * as fp32, mathematical functions, which elements dropout keeps, and the products beside oneDNN's. */
#ifndef DT_ENGINE_OPS_CPU_OPS_INT_H
#define DT_ENGINE_OPS_CPU_OPS_INT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/ops/cpu/product.h"
#include "engine/ops/list.h"
#include "engine/tensor.h"

#define DT_CPU_DECLARE(op) extern __typeof__(*((dt_ops *)0)->op) DT_CPU_NAME(op);

DT_OPS_NEEDED(DT_CPU_DECLARE)

/* rows_int: reads and writes activations of any type as rows of fp32.
 *
 * A row of fp32 is used in place. A 16-bit row is widened into scratch when it is read; when it is
 * written, it is built in scratch and narrowed afterwards (half_int.h). The code of an op is thus the
 * same for all types:
 *
 *     const float *in = dt_row_read(x, start, n, scratch_a);
 *     float *out = dt_row_open(y, start, scratch_b);
 *     ...
 *     dt_row_close(y, start, n, out);
 */

/* Elements that an elementwise op processes at a time: input and output stay in the L1 cache. */
#define DT_ROW_CHUNK 2048

/* type: BF16 or F16 */
static inline void dt_row_widen(float *out, const uint16_t *in, dt_dtype type, int64_t n)
{
    if (type == DT_F16)
        dt_f16_widen_row(out, in, n);
    else
        dt_bf16_widen_row(out, in, n);
}

static inline void dt_row_narrow(uint16_t *out, dt_dtype type, const float *in, int64_t n)
{
    if (type == DT_F16)
        dt_f16_narrow_row(out, in, n);
    else
        dt_bf16_narrow_row(out, in, n);
}

/* Returns elements start .. start+n-1 of x as fp32: in place, or widened into scratch. */
static inline const float *dt_row_read(const dt_tensor *x, int64_t start, int64_t n, float *scratch)
{
    if (x->dtype == DT_F32)
        return (const float *)x->data + start;
    dt_row_widen(scratch, (const uint16_t *)x->data + start, x->dtype, n);
    return scratch;
}

/* Returns the n elements of w plus `shift` as fp32: in place if nothing is added, else in scratch. */
static inline const float *dt_row_shifted(const dt_tensor *w, int64_t n, double shift,
                                          float *scratch)
{
    const float *read = dt_row_read(w, 0, n, scratch);

    if (shift == 0.0)
        return read;
    for (int64_t j = 0; j < n; j++)
        scratch[j] = (float)shift + read[j];
    return scratch;
}

/* Returns where to write fp32 elements of y from `start` on: in place, or scratch. Finish with
 * dt_row_close(). */
static inline float *dt_row_open(dt_tensor *y, int64_t start, float *scratch)
{
    return y->dtype == DT_F32 ? (float *)y->data + start : scratch;
}

static inline void dt_row_close(dt_tensor *y, int64_t start, int64_t n, const float *row)
{
    if (y->dtype != DT_F32)
        dt_row_narrow((uint16_t *)y->data + start, y->dtype, row, n);
}

/* Checks that the type of x is one of F32, BF16 and F16; else DT_ERR_UNSUPPORTED. */
static inline dt_status dt_row_check(const dt_tensor *x, const char *op, dt_error *err)
{
    if (x->dtype == DT_F32 || x->dtype == DT_BF16 || x->dtype == DT_F16)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "%s: type '%s' cannot be computed on the cpu: use fp32, bf16 or fp16", op,
                   dt_dtype_name(x->dtype));
}

/* math_int: defines mathematical functions that the compiler can vectorise, unlike those of libm.
 *
 * dt_exp      relative error < 2e-7 on [-87, 87]; 0 below -87.3, exp(87) above 87; NaN gives NaN
 * dt_sigmoid  1 / (1 + exp(-x)), relative error < 4e-7
 * dt_tanh     relative error < 5e-7
 * dt_bell     exp(-x^2/2), relative error < 2e-7 + 6e-8 x^2; 0 beyond 12.8
 * dt_normal   the cumulative normal distribution (1 + erf(x/sqrt(2))) / 2, computed from x and
 *             dt_bell(x); relative error < 5e-7 + 6e-8 x^2 on both sides, because the smaller tail is
 *             computed directly and not as a difference from 1
 *
 * exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2)/2; ln 2 in two parts (Cody and
 * Waite), exp(r) by its Taylor series up to r^7, with a remainder below 6e-9.
 * dt_exp is clamped at 87, where 1/exp(x) is still a normal number: denormal numbers are a hundred
 * times slower on many processors. dt_bell ends at 12.8 for the same reason.
 * The ratio of the tail to the bell (Mills' ratio / sqrt(2 pi)) falls as 1/z; it is a polynomial of
 * degree 9 in q = 1/(1 + 0.35 z), fitted on [0, 13] to a relative error of 3e-8, 2.8e-7 in fp32.
 */

#define DT_EXP_MIN -87.3f
#define DT_EXP_MAX 87.0f

static inline float dt_exp(float x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float shifter = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float held = x < DT_EXP_MIN ? DT_EXP_MIN : x > DT_EXP_MAX ? DT_EXP_MAX : x;
    float shifted = held * log2e + shifter;
    float n = shifted - shifter;
    float r = (held - n * ln2_high) - n * ln2_low;
    float p = 1.0f / 5040.0f;
    uint32_t bits;
    float scale;

    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &shifted, sizeof bits); /* n is in the low bits of `shifted` */
    bits = (bits + 127u) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return x < DT_EXP_MIN ? 0.0f : p * scale;
}

static inline float dt_sigmoid(float x)
{
    return 1.0f / (1.0f + dt_exp(-x));
}

/* tanh(x) = (e^2x - 1) / (e^2x + 1) would cancel for small x: there a polynomial in x^2, that of Cephes' tanhf */
static inline float dt_tanh(float x)
{
    float size = fabsf(x), z = x * x;
    float far = 1.0f - 2.0f / (dt_exp(2.0f * size) + 1.0f);
    float p = -5.70498872745e-3f;

    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return size < 0.625f ? x + x * z * p : x < 0.0f ? -far : far;
}

static inline float dt_bell(float x)
{
    float bell = dt_exp(-0.5f * x * x);

    return fabsf(x) > 12.8f ? 0.0f : bell;
}

static inline float dt_normal(float x, float bell)
{
    float q = 1.0f / (1.0f + 0.35f * fabsf(x));
    float p = -0.029095137f, tail;

    p = p * q + 0.14371975f;
    p = p * q - 0.25518265f;
    p = p * q + 0.15855280f;
    p = p * q - 0.022671120f;
    p = p * q + 0.10531704f;
    p = p * q + 0.11988273f;
    p = p * q + 0.13985476f;
    p = p * q + 0.13962182f;
    tail = bell * p * q;
    return x < 0.0f ? tail : 1.0f - tail;
}

/* dropout_int: decides which elements dropout keeps. Element i is kept if the uniform number of
 * Philox word i is >= p; kept elements are scaled by 1/(1-p).
 *
 * Lanes      on x86 as many blocks of Philox are drawn at once as a register has lanes of 64 bits: compilers do
 *            not find the instruction for products of 32 by 32 bits in a loop over dt_philox_draw()
 */

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

/* matmul_int: declares the two products that matmul.c chooses from in addition to oneDNN
 * (product.h). */

/* matmul_few: y = x w^T + bias for few rows of x, as in generation token by token.
 *
 * Method     each row of w is read once, in its own type, and multiplied with every row of x: reading w takes
 *            most of the time, half of it if w has 16 bits
 * Order      the order of a sum depends on k alone: a row of y has the same bits for any thread count, and for any
 *            other rows
 * Types      product->type for x, w and bias; c_type is F32 or the same type; sums are in fp32
 */

#define DT_CPU_FEW_ROWS 64

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err);

/* matmul_wide: a product of 16-bit numbers, computed in fp32, for processors on which oneDNN has no code for them.
 *
 * Method     widens all of b, then as many rows of a at a time as take no more memory than b; the products
 *            are in fp32, and narrowed once if c has 16 bits
 * Precision  that of fp32 sums: only c is rounded to 16 bits
 * Scratch    that of the device, up to 2 k n floats
 * Types      product->type BF16 or F16, c_type the same or F32
 */

dt_status DT_CPU_NAME(matmul_wide)(dt_device *device, const dt_cpu_product *product, void *c,
                                   const void *a, const void *b, const void *bias, dt_error *err);

#endif
