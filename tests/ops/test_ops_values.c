/* Values at the edges: rounding and overflow of the types of 16 bits, and values that are not
 * finite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/harness.h"

#define VECTOR 37 /* copies of each value: whole vectors of every instruction set, and a rest */

typedef struct pair {
    uint32_t from; /* bits of an fp32 */
    uint16_t to;
} pair;

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void assert_casts(dt_dtype dtype, const pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t from[VECTOR];
        uint16_t to[VECTOR];
        dt_tensor x = dt_tensor_1d(from, DT_F32, VECTOR), out = dt_tensor_1d(to, dtype, VECTOR);
        dt_error err = DT_ERROR_INIT;
        bench b;

        for (int l = 0; l < VECTOR; l++)
            from[l] = pairs[i].from;
        bench_open(&b, 1);
        bench_ok(b.device.ops->cast(&b.device, &out, &x, &err), &err);
        for (int l = 0; l < VECTOR; l++)
            if (to[l] != pairs[i].to)
                fail_msg("%08x becomes %04x at place %d, not %04x", pairs[i].from, to[l], l,
                         pairs[i].to);
        bench_close(&b);
    }
}

static void test_cast_to_bf16_rounds_to_nearest_even(void **state)
{
    static const pair pairs[] = {
        {0x3f800000u, 0x3f80}, {0x3f807fffu, 0x3f80}, {0x3f808000u, 0x3f80}, {0x3f808001u, 0x3f81},
        {0x3f818000u, 0x3f82}, {0xbf818000u, 0xbf82}, {0x7f7fffffu, 0x7f80}, {0x7f800000u, 0x7f80},
        {0xff800000u, 0xff80}, {0x00000001u, 0x0000}, {0x80000000u, 0x8000}, {0x7f800001u, 0x7fc0}};

    assert_casts(DT_BF16, pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_cast_to_fp16_rounds_to_nearest_even(void **state)
{
    static const pair pairs[] = {
        {0x3f800000u, 0x3c00},                        /* 1 */
        {0x3f800fffu, 0x3c00},                        /* below the middle of 1 and the next */
        {0x3f801000u, 0x3c00},                        /* the middle: rounds to the even one */
        {0x3f801001u, 0x3c01},                        /* above */
        {0x3f803000u, 0x3c02},                        /* the next middle: the even one is above */
        {0xbf803000u, 0xbc02}, {0x3fffffffu, 0x4000}, /* carries into the exponent */
        {0x80000000u, 0x8000},                        /* -0 */
    };

    assert_casts(DT_F16, pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_cast_to_fp16_keeps_subnormal_numbers(void **state)
{
    static const pair pairs[] = {
        {0x38800000u, 0x0400}, /* 2^-14, the smallest normal one */
        {0x387fffffu, 0x0400}, /* just below rounds up to it */
        {0x38000000u, 0x0200}, /* 2^-15 */
        {0x33800000u, 0x0001}, /* 2^-24, the smallest of all */
        {0x33000000u, 0x0000}, /* 2^-25: the middle, rounds to the even one */
        {0x33000001u, 0x0001}, {0x33c00000u, 0x0002}, /* 1.5 times 2^-24: rounds to the even one */
        {0xb3c00000u, 0x8002}, {0x00000001u, 0x0000}, {0x80000001u, 0x8000},
    };

    assert_casts(DT_F16, pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_cast_to_fp16_overflows_to_infinity(void **state)
{
    static const pair pairs[] = {
        {0x477fe000u, 0x7bff}, /* 65504, the largest */
        {0x477fefffu, 0x7bff}, /* rounds down to it */
        {0x477ff000u, 0x7c00}, /* 65520 rounds up: infinite */
        {0xc77ff000u, 0xfc00}, {0x47800000u, 0x7c00}, {0x7f7fffffu, 0x7c00},
        {0x7f800000u, 0x7c00}, {0xff800000u, 0xfc00}, {0x7fc00000u, 0x7e00},
        {0x7f802000u, 0x7e01}, {0xffc02000u, 0xfe01}, /* a NaN stays a NaN */
    };

    assert_casts(DT_F16, pairs, sizeof pairs / sizeof pairs[0]);
}

/* Converts all numbers of the type to fp32 and back; the harness has their values. */
static void test_every_fp16_goes_to_fp32_and_back(void **state)
{
    enum { ALL = 1 << 16 };
    static uint16_t from[ALL], back[ALL];
    static float wide[ALL];
    dt_tensor x = dt_tensor_1d(from, DT_F16, ALL), y = dt_tensor_1d(wide, DT_F32, ALL);
    dt_tensor z = dt_tensor_1d(back, DT_F16, ALL);
    dt_error err = DT_ERROR_INIT;
    bench b;

    for (int i = 0; i < ALL; i++)
        from[i] = (uint16_t)i;
    bench_open(&b, 1);
    bench_ok(b.device.ops->cast(&b.device, &y, &x, &err), &err);
    bench_ok(b.device.ops->cast(&b.device, &z, &y, &err), &err);
    for (int i = 0; i < ALL; i++) {
        double want = bench_element(&x, i);

        if (isnan(want)) {
            assert_true(isnan(wide[i]));
            assert_int_equal(back[i], i | 0x0200); /* quiet */
        } else {
            assert_true((double)wide[i] == want);
            assert_int_equal(back[i], i);
        }
    }
    bench_close(&b);
}

/* A result that fp16 cannot hold must reach the loss scaler. */
static void test_product_that_overflows_fp16_is_infinite(void **state)
{
    dt_error err = DT_ERROR_INIT;
    bench b;

    bench_open(&b, 1);
    bench_begin(&b, DT_F16);
    dt_tensor x = bench_output(&b, DT_F16, 3, 64, 0), w = bench_output(&b, DT_F16, 5, 64, 0);
    dt_tensor y = bench_output(&b, DT_F16, 3, 5, 0), wide_y = bench_output(&b, DT_F32, 3, 5, 0);

    for (int64_t i = 0; i < 3 * 64; i++)
        bench_put(&x, i, 64.0);
    for (int64_t i = 0; i < 5 * 64; i++)
        bench_put(&w, i, i < 64 ? -64.0 : 64.0);
    bench_ok(b.device.ops->matmul_forward(&b.device, &y, &x, &w, NULL, &err), &err);
    bench_ok(b.device.ops->matmul_forward(&b.device, &wide_y, &x, &w, NULL, &err), &err);
    for (int64_t i = 0; i < 15; i++) {
        assert_true(bench_element(&y, i) == (i % 5 == 0 ? (double)-INFINITY : (double)INFINITY));
        assert_true(bench_element(&wide_y, i) == (i % 5 == 0 ? -262144.0 : 262144.0));
    }
    bench_close(&b);
}

/* oneDNN's code for AMX, up to 3.14, reads past the end of a row of x if its length is not a multiple of 32. */
static void test_an_infinity_stays_in_its_row_of_a_product(void **state)
{
    static const dt_dtype types[] = {DT_F32, DT_BF16, DT_F16};
    static const int64_t lengths[] = {31, 33, 47, 63, 64, 65, 95, 127};
    enum { ROWS = 88, OUTPUTS = 21, INFINITE_ROW = 40 };
    dt_error err = DT_ERROR_INIT;

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            int64_t k = lengths[l];
            bench b;

            bench_open(&b, 1);
            bench_begin(&b, types[t]);
            dt_tensor x = bench_output(&b, types[t], ROWS, k, 0);
            dt_tensor w = bench_output(&b, types[t], OUTPUTS, k, 0);
            dt_tensor y = bench_output(&b, types[t], ROWS, OUTPUTS, 0);

            for (int64_t i = 0; i < ROWS * k; i++)
                bench_put(&x, i, i / k == INFINITE_ROW ? INFINITY : 1.0);
            for (int64_t i = 0; i < OUTPUTS * k; i++)
                bench_put(&w, i, 1.0);
            bench_ok(b.device.ops->matmul_forward(&b.device, &y, &x, &w, NULL, &err), &err);
            for (int64_t i = 0; i < ROWS * OUTPUTS; i++) {
                double element = bench_element(&y, i);

                if (i / OUTPUTS == INFINITE_ROW ? !isinf(element) : element != (double)k)
                    fail_msg("%s, rows of %lld: row %lld has %g", dt_dtype_name(types[t]),
                             (long long)k, (long long)(i / OUTPUTS), element);
            }
            bench_close(&b);
        }
}

/* Up to DT_TRANSLATIONS_EXACT rows: a text or a translation has the same bits alone and together with others. */
static void test_a_row_of_a_product_has_the_bits_that_it_has_alone(void **state)
{
    static const dt_dtype types[] = {DT_F32, DT_BF16, DT_F16};
    static const int64_t lengths[] = {7, 64, 289}, rows[] = {1, 3, 16, 17, 31, 63};
    enum { ROWS = 64, OUTPUTS = 37 };
    dt_error err = DT_ERROR_INIT;

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            int64_t k = lengths[l];
            bench b;

            bench_open(&b, 2);
            bench_begin(&b, types[t]);
            operand x = bench_random(&b, types[t], 1.0, ROWS, k, 0);
            operand w = bench_random(&b, types[t], 1.0, OUTPUTS, k, 0);
            dt_tensor all = bench_output(&b, DT_F32, ROWS, OUTPUTS, 0);

            bench_ok(
                b.device.ops->matmul_forward(&b.device, &all, &x.tensor, &w.tensor, NULL, &err),
                &err);
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
                dt_tensor some = bench_output(&b, DT_F32, rows[r], OUTPUTS, 0);

                x.tensor.dim[0] = rows[r];
                bench_ok(b.device.ops->matmul_forward(&b.device, &some, &x.tensor, &w.tensor, NULL,
                                                      &err),
                         &err);
                if (memcmp(some.data, all.data, dt_tensor_bytes(&some)) != 0)
                    fail_msg("%s, %lld values: %lld rows have other bits than in %d",
                             dt_dtype_name(types[t]), (long long)k, (long long)rows[r], ROWS);
            }
            bench_close(&b);
        }
}

/* The same result at any position, with any neighbours. */
static void test_sum_of_squares_of_what_is_not_finite_is_not_finite(void **state)
{
    static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u};
    enum { N = 1031, THREADED = 40009 };
    static float x[THREADED];
    const int64_t sizes[] = {N, THREADED};
    dt_error err = DT_ERROR_INIT;
    bench b;

    bench_open(&b, 2);
    for (size_t s = 0; s < 2; s++) {
        dt_tensor tensor = dt_tensor_1d(x, DT_F32, sizes[s]);

        for (int64_t i = 0; i < sizes[s]; i++)
            x[i] = 1.0f;
        for (int64_t i = 0; i < sizes[s]; i += i < 70 ? 1 : 97) {
            for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
                double sum = 0.0;

                x[i] = float_of(bad[k]);
                bench_ok(b.device.ops->sum_squares(&b.device, &sum, &tensor, &err), &err);
                assert_false(isfinite(sum));
            }
            x[i] = 1.0f;
        }
        x[0] = float_of(0x7f800000u);
        x[1] = float_of(0xff800000u); /* the two do not cancel */
        double sum = 0.0;

        bench_ok(b.device.ops->sum_squares(&b.device, &sum, &tensor, &err), &err);
        assert_true(isinf(sum));
        x[0] = float_of(0x7f7fffffu); /* fp32's largest: its square is finite in double */
        x[1] = 1.0f;
        bench_ok(b.device.ops->sum_squares(&b.device, &sum, &tensor, &err), &err);
        assert_true(isfinite(sum));
    }
    bench_close(&b);
}

static void test_type_without_arithmetic_is_refused_with_a_way_out(void **state)
{
    float memory[16] = {0};
    dt_tensor x = dt_tensor_1d(memory, DT_I32, 16);
    dt_error err = DT_ERROR_INIT;
    bench b;

    bench_open(&b, 1);
    assert_int_equal(b.device.ops->activation_forward(&b.device, &x, &x, DT_ACTIVATION_GELU, &err),
                     DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "use fp32, bf16 or fp16"));
    bench_close(&b);
}

static void test_token_outside_the_vocabulary_is_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    bench b;

    bench_open(&b, 1);
    bench_begin(&b, DT_F32);
    dt_tensor tokens = bench_tokens(&b, 0, 4, 1, 3), losses = bench_output(&b, DT_F32, 3, 0, 0);
    operand table = bench_random(&b, DT_F32, 1.0, 4, 8, 0);
    dt_tensor out = bench_output(&b, DT_F32, 1, 3, 8);
    operand logits = bench_random(&b, DT_F32, 1.0, 3, 4, 0);

    ((int32_t *)tokens.data)[2] = 4;
    assert_int_equal(b.device.ops->embedding_forward(&b.device, &out, &tokens, &table.tensor,
                                                     &table.tensor, 1, NULL, &err),
                     DT_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "token 4 at position 2"));
    dt_error_clear(&err);
    assert_int_equal(b.device.ops->cross_entropy_forward(&b.device, &losses, &logits.tensor,
                                                         &tokens, NULL, 4, &err),
                     DT_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "target 4 at position 2"));
    bench_close(&b);
}

/* The bounds of engine/ops/cpu/ops_int.h: below 0 the tail itself, without cancellation. */
static void test_gelu_keeps_its_digits_in_the_tail(void **state)
{
    enum { PLACES = 26001 };
    float x[PLACES], y[PLACES];
    dt_tensor in = dt_tensor_1d(x, DT_F32, PLACES), out = dt_tensor_1d(y, DT_F32, PLACES);
    dt_error err = DT_ERROR_INIT;
    bench b;

    for (int i = 0; i < PLACES; i++)
        x[i] = (float)(i - PLACES / 2) * 1e-3f;
    bench_open(&b, 1);
    bench_ok(b.device.ops->activation_forward(&b.device, &out, &in, DT_ACTIVATION_GELU, &err),
             &err);
    for (int i = 0; i < PLACES; i++) {
        double at = x[i], want = at * 0.5 * erfc(-at * 0.70710678118654752440);
        double bound = (6e-7 + 6e-8 * at * at) * fabs(want);

        if (x[i] < -12.8f)
            assert_true(y[i] == 0.0f);
        else if (!(fabs((double)y[i] - want) <= bound))
            fail_msg("gelu(%g) is %g, not %g", at, (double)y[i], want);
    }
    bench_close(&b);
}

static void test_gelu_of_what_is_not_finite_is_not_finite(void **state)
{
    const dt_activation_kind kinds[] = {DT_ACTIVATION_GELU, DT_ACTIVATION_GELU_TANH};
    float x[VECTOR], y[VECTOR];
    dt_tensor in = dt_tensor_1d(x, DT_F32, VECTOR), out = dt_tensor_1d(y, DT_F32, VECTOR);
    dt_error err = DT_ERROR_INIT;
    bench b;

    bench_open(&b, 1);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < VECTOR; i++)
            x[i] = i % 2 == 0 ? NAN : INFINITY;
        bench_ok(b.device.ops->activation_forward(&b.device, &out, &in, kinds[k], &err), &err);
        for (int i = 0; i < VECTOR; i++)
            assert_true(i % 2 == 0 ? isnan(y[i]) : isinf(y[i]));
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cast_to_bf16_rounds_to_nearest_even),
        cmocka_unit_test(test_cast_to_fp16_rounds_to_nearest_even),
        cmocka_unit_test(test_cast_to_fp16_keeps_subnormal_numbers),
        cmocka_unit_test(test_cast_to_fp16_overflows_to_infinity),
        cmocka_unit_test(test_every_fp16_goes_to_fp32_and_back),
        cmocka_unit_test(test_product_that_overflows_fp16_is_infinite),
        cmocka_unit_test(test_an_infinity_stays_in_its_row_of_a_product),
        cmocka_unit_test(test_a_row_of_a_product_has_the_bits_that_it_has_alone),
        cmocka_unit_test(test_sum_of_squares_of_what_is_not_finite_is_not_finite),
        cmocka_unit_test(test_type_without_arithmetic_is_refused_with_a_way_out),
        cmocka_unit_test(test_token_outside_the_vocabulary_is_refused),
        cmocka_unit_test(test_gelu_keeps_its_digits_in_the_tail),
        cmocka_unit_test(test_gelu_of_what_is_not_finite_is_not_finite),
    };
    dt_error err = DT_ERROR_INIT;
    dt_device device;

    if (dt_device_open_cpu(&device, 1, &err) == DT_ERR_UNSUPPORTED) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    dt_device_close(&device);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
