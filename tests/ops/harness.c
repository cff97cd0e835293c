#include "tests/ops/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/ops/backend.h"

#define MEMORY_BYTES   ((size_t)32 << 20)
#define PAGE_BYTES     ((size_t)4096)
#define HALF_GRAIN_F16 0x1p-25 /* half of the smallest number of the type */

static void protect(bench *b, size_t at, size_t bytes, int protection)
{
    if (bench_backend_guards)
        assert_int_equal(mprotect(b->memory + at, bytes, protection), 0);
}

void bench_open(bench *b, int threads)
{
    dt_error err = DT_ERROR_INIT;

    memset(b, 0, sizeof *b);
    bench_ok(bench_backend_open(&b->device, threads, &err), &err);
    b->memory = bench_backend_memory(&b->device, MEMORY_BYTES);
    assert_non_null(b->memory);
    dt_arena_init(&b->arena, (size_t)1 << 20);
}

void bench_begin(bench *b, dt_dtype act)
{
    dt_arena_reset(&b->arena);
    protect(b, 0, MEMORY_BYTES, PROT_READ | PROT_WRITE);
    b->used_bytes = 0;
    b->act = act;
    b->draws = 0;
    b->digest = 14695981039346656037u;
    b->worst = 0.0;
    b->worst_where[0] = '\0';
}

void bench_close(bench *b)
{
    protect(b, 0, MEMORY_BYTES, PROT_READ | PROT_WRITE);
    bench_backend_memory_free(&b->device, b->memory);
    dt_device_close(&b->device);
    dt_arena_release(&b->arena);
}

double bench_uniform(bench *b)
{
    const dt_philox_key key = {.seed = 20261121, .op = 15};
    uint64_t draw = b->draws++;

    return (double)dt_philox_uniform(dt_philox_draw(&key, draw / 4).word[draw % 4]);
}

double *bench_doubles(bench *b, int64_t n)
{
    double *memory = dt_arena_alloc_array(&b->arena, (size_t)(n > 0 ? n : 1), sizeof *memory);

    assert_non_null(memory);
    return memory;
}

static dt_tensor tensor_new(bench *b, dt_dtype dtype, int64_t d0, int64_t d1, int64_t d2)
{
    dt_tensor x = d2 > 0   ? dt_tensor_3d(NULL, dtype, d0, d1, d2)
                  : d1 > 0 ? dt_tensor_2d(NULL, dtype, d0, d1)
                           : dt_tensor_1d(NULL, dtype, d0);
    size_t bytes = dt_tensor_bytes(&x), grain = bench_backend_guards ? PAGE_BYTES : 64;
    size_t end = (b->used_bytes + bytes + grain - 1) / grain * grain;

    x.data = b->memory + (bench_backend_guards ? end - bytes : b->used_bytes);
    b->used_bytes = end + (bench_backend_guards ? PAGE_BYTES : 0);
    assert_true(b->used_bytes <= MEMORY_BYTES);
    protect(b, end, PAGE_BYTES, PROT_NONE);
    return x;
}

void *bench_bytes(bench *b, const void *from, size_t bytes)
{
    dt_tensor x = tensor_new(b, DT_I32, (int64_t)(bytes + 3) / 4, 0, 0);

    memcpy(x.data, from, bytes);
    return x.data;
}

/* A bf16 is the upper half of a float; cutting the lower half off is exact enough for inputs. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts by the definition of IEEE 754 binary16; value is infinite or below 65536. */
static uint16_t to_f16(double value)
{
    int exponent;
    double mantissa = frexp(fabs(value), &exponent); /* in [0.5, 1) */
    uint16_t sign = signbit(value) ? 0x8000u : 0u;

    if (isinf(value))
        return sign | 0x7c00u;
    if (exponent < -13) /* subnormal: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint16_t)ldexp(fabs(value), 24));
    return (uint16_t)(sign | (uint16_t)((exponent + 14) << 10) |
                      ((uint16_t)ldexp(mantissa, 11) & 0x3ffu));
}

static double from_f16(uint16_t half)
{
    int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    double size = exponent == 0     ? ldexp(mantissa, -24)
                  : exponent < 0x1f ? ldexp(mantissa + 1024, exponent - 25)
                  : mantissa == 0   ? (double)INFINITY
                                    : (double)NAN;

    return (half & 0x8000u) != 0 ? -size : size;
}

void bench_put(dt_tensor *x, int64_t i, double value)
{
    if (x->dtype == DT_F32)
        ((float *)x->data)[i] = (float)value;
    else
        ((uint16_t *)x->data)[i] = x->dtype == DT_BF16 ? to_bf16((float)value) : to_f16(value);
}

double bench_element(const dt_tensor *x, int64_t i)
{
    if (x->dtype == DT_F32)
        return (double)((const float *)x->data)[i];
    return x->dtype == DT_BF16 ? (double)from_bf16(((const uint16_t *)x->data)[i])
                               : from_f16(((const uint16_t *)x->data)[i]);
}

const char *bench_type_name(dt_dtype dtype)
{
    return dtype == DT_F32 ? "fp32" : dtype == DT_BF16 ? "bf16" : "fp16";
}

operand bench_random(bench *b, dt_dtype dtype, double size, int64_t d0, int64_t d1, int64_t d2)
{
    operand x = {tensor_new(b, dtype, d0, d1, d2), NULL};
    int64_t n = dt_tensor_elems(&x.tensor);

    x.value = bench_doubles(b, n);
    for (int64_t i = 0; i < n; i++) {
        bench_put(&x.tensor, i, (2.0 * bench_uniform(b) - 1.0) * size);
        x.value[i] = bench_element(&x.tensor, i);
    }
    return x;
}

dt_tensor bench_output(bench *b, dt_dtype dtype, int64_t d0, int64_t d1, int64_t d2)
{
    dt_tensor x = tensor_new(b, dtype, d0, d1, d2);

    memset(x.data, 0xff, dt_tensor_bytes(&x)); /* a NaN in each type */
    return x;
}

dt_tensor bench_tokens(bench *b, int64_t low, int64_t high, int64_t d0, int64_t d1)
{
    dt_tensor x = tensor_new(b, DT_I32, d0, d1, 0);

    for (int64_t i = 0; i < dt_tensor_elems(&x); i++)
        ((int32_t *)x.data)[i] =
            (int32_t)(low + (int64_t)(bench_uniform(b) * (double)(high - low)));
    return x;
}

void bench_check(bench *b, const char *what, const dt_tensor *got, const double *want)
{
    const unsigned char *bytes = got->data;
    int64_t n = dt_tensor_elems(got);
    double grain = got->dtype == DT_F16 ? HALF_GRAIN_F16 : 0.0, squares = 0.0, rms;
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.synchronize(&b->device, &err), &err);
    for (size_t i = 0; i < dt_tensor_bytes(got); i++)
        b->digest = (b->digest ^ bytes[i]) * 1099511628211u;
    for (int64_t i = 0; i < n; i++)
        squares += want[i] * want[i];
    rms = sqrt(squares / (double)n);
    for (int64_t i = 0; i < n; i++) {
        double value = bench_element(got, i), distance = fabs(value - want[i]);
        double error = distance <= grain ? 0.0 : distance / (fabs(want[i]) + rms);

        if (error > b->worst || isnan(error)) {
            b->worst = isnan(error) ? INFINITY : error;
            snprintf(b->worst_where, sizeof b->worst_where, "%s[%lld] is %g, not %g", what,
                     (long long)i, value, want[i]);
        }
    }
}

void bench_ok(dt_status st, const dt_error *err)
{
    if (st != DT_OK)
        fail_msg("%s: %s", dt_status_name(st), err->message);
}
