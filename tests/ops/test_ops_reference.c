/* The references' backward passes compared with finite differences of their forward passes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/reference.h"

#define STEP  1e-5
#define BOUND 1e-8 /* error of a central difference: STEP^2 times a third derivative of order 1 */

/* A function of one flat input; the scalar is a fixed mix of its outputs. */
typedef double scalar_of(const double *x);

static double number(int64_t i)
{
    return sin(1.0 + 2.3 * (double)i);
}

static void fill(double *out, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = number(seed + i);
}

static double mix(const double *y, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += y[i] * number(1000 + i);
    return sum;
}

static void assert_gradient(scalar_of *f, double *x, const double *dx, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double at = x[i], up, down, slope;

        x[i] = at + STEP;
        up = f(x);
        x[i] = at - STEP;
        down = f(x);
        x[i] = at;
        slope = (up - down) / (2.0 * STEP);
        if (!(fabs(slope - dx[i]) <= BOUND * (1.0 + fabs(slope))))
            fail_msg("element %lld: %.12g by difference, %.12g by formula", (long long)i, slope,
                     dx[i]);
    }
}

enum { LN_N = 3, LN_C = 5, LN_X = LN_N * LN_C, LN_ALL = LN_X + 2 * LN_C };

/* x, then w, then b */
static double layernorm_scalar(const double *all)
{
    double y[LN_X], mean[LN_N], rstd[LN_N];

    ref_layernorm_forward(y, mean, rstd, all, all + LN_X, all + LN_X + LN_C, LN_N, LN_C, 1e-5);
    return mix(y, LN_X);
}

static void test_layernorm_backward_is_the_slope_of_forward(void **state)
{
    double all[LN_ALL], dall[LN_ALL] = {0}, dy[LN_X];

    fill(all, LN_ALL, 0);
    fill(dy, LN_X, 1000);
    ref_layernorm_backward(dall, dall + LN_X, dall + LN_X + LN_C, dy, all, all + LN_X, LN_N, LN_C,
                           1e-5);
    assert_gradient(layernorm_scalar, all, dall, LN_ALL);
}

enum { MM_N = 3, MM_I = 4, MM_O = 5, MM_X = MM_N * MM_I, MM_W = MM_O * MM_I };

/* x, then w, then bias */
static double matmul_scalar(const double *all)
{
    double y[MM_N * MM_O];

    ref_matmul_forward(y, all, all + MM_X, all + MM_X + MM_W, MM_N, MM_I, MM_O);
    return mix(y, MM_N * MM_O);
}

static void test_matmul_backward_is_the_slope_of_forward(void **state)
{
    double all[MM_X + MM_W + MM_O], dall[MM_X + MM_W + MM_O] = {0}, dy[MM_N * MM_O];

    fill(all, MM_X + MM_W + MM_O, 0);
    fill(dy, MM_N * MM_O, 1000);
    ref_matmul_backward(dall, dall + MM_X, dall + MM_X + MM_W, dy, all, all + MM_X, MM_N, MM_I,
                        MM_O);
    assert_gradient(matmul_scalar, all, dall, MM_X + MM_W + MM_O);
}

enum {
    AT_B = 2,
    AT_T = 4,
    AT_H = 2,
    AT_D = 3,
    AT_OUT = AT_B * AT_T * AT_H * AT_D,
    AT_MASK = AT_B * AT_H * AT_T * AT_T
};

static double at_mask[AT_MASK];
static ref_attention at_shape;

static double attention_scalar(const double *qkv)
{
    double copy[3 * AT_OUT], out[AT_OUT], lse[AT_B * AT_H * AT_T];
    ref_qkv x = ref_packed(copy, &at_shape);

    memcpy(copy, qkv, sizeof copy);
    ref_attention_forward(out, lse, &x, &at_shape);
    return mix(out, AT_OUT);
}

static void assert_attention_gradient(void)
{
    static const int32_t starts[AT_B * AT_T] = {0, 0, 2, 2, 0, 1, 1, 3};
    double qkv[3 * AT_OUT], dqkv[3 * AT_OUT], dout[AT_OUT];

    fill(qkv, 3 * AT_OUT, 0);
    fill(dout, AT_OUT, 1000);
    for (int mask = 0; mask < 3; mask++) {
        ref_qkv x, dx;

        at_shape = ref_self_attention(AT_B, AT_T, AT_H, AT_D, mask > 0, at_mask);
        at_shape.starts = mask > 1 ? starts : NULL;
        x = ref_packed(qkv, &at_shape);
        dx = ref_packed(dqkv, &at_shape);
        ref_attention_backward(&dx, dout, &x, &at_shape);
        assert_gradient(attention_scalar, qkv, dqkv, 3 * AT_OUT);
    }
}

/* Two queries of four heads with five keys of two heads: all in one array. */
enum { GR_Q = 2 * 2 * 12, GR_K = 2 * 5 * 6, GR_ALL = GR_Q + 2 * GR_K };

static const ref_attention gr_shape = {2, 2, 5, 4, 2, 3, true, NULL, NULL, NULL, 0, 0, 0};

static ref_qkv grouped(double *all)
{
    return (ref_qkv){all, all + GR_Q, all + GR_Q + GR_K, 12, 6};
}

static double grouped_scalar(const double *all)
{
    double copy[GR_ALL], out[GR_Q], lse[2 * 4 * 2];
    ref_qkv x = grouped(copy);

    memcpy(copy, all, sizeof copy);
    ref_attention_forward(out, lse, &x, &gr_shape);
    return mix(out, GR_Q);
}

static void test_attention_of_grouped_heads_has_its_slope(void **state)
{
    double all[GR_ALL], dall[GR_ALL], dout[GR_Q];
    ref_qkv x = grouped(all), dx = grouped(dall);

    fill(all, GR_ALL, 0);
    fill(dout, GR_Q, 1000);
    ref_attention_backward(&dx, dout, &x, &gr_shape);
    assert_gradient(grouped_scalar, all, dall, GR_ALL);
}

static void test_attention_backward_is_the_slope_of_forward(void **state)
{
    for (size_t i = 0; i < sizeof at_mask / sizeof at_mask[0]; i++)
        at_mask[i] = 1.0;
    assert_attention_gradient();
}

static void test_attention_backward_is_the_slope_of_forward_under_one_dropout_mask(void **state)
{
    for (size_t i = 0; i < sizeof at_mask / sizeof at_mask[0]; i++)
        at_mask[i] = number((int64_t)i) > -0.5 ? 1.5 : 0.0;
    assert_attention_gradient();
}

enum { CE_N = 4, CE_VP = 6, CE_V = 5, CE_ALL = CE_N * CE_VP };
static const int32_t ce_targets[CE_N] = {2, -1, 0, 4};

static double cross_entropy_scalar(const double *logits)
{
    double losses[CE_N], unused[CE_ALL], sum = 0.0;

    ref_cross_entropy(losses, unused, logits, ce_targets, CE_N, CE_VP, CE_V, 1.0, 0.2);
    for (int i = 0; i < CE_N; i++)
        sum += 0.3 * losses[i];
    return sum;
}

static void test_cross_entropy_gradient_is_the_slope_of_the_loss(void **state)
{
    double logits[CE_ALL], dlogits[CE_ALL], losses[CE_N];

    fill(logits, CE_ALL, 0);
    ref_cross_entropy(losses, dlogits, logits, ce_targets, CE_N, CE_VP, CE_V, 0.3, 0.2);
    assert_gradient(cross_entropy_scalar, logits, dlogits, CE_ALL);
}

static double gelu_scalar(const double *x)
{
    return ref_gelu(x[0]);
}

static double gelu_tanh_scalar(const double *x)
{
    return ref_gelu_tanh(x[0]);
}

static void test_gelu_slope_is_the_slope_of_gelu(void **state)
{
    for (double at = -6.0; at <= 6.0; at += 0.37) {
        double x = at, dx = ref_gelu_slope(at), dx_tanh = ref_gelu_tanh_slope(at);

        assert_gradient(gelu_scalar, &x, &dx, 1);
        assert_gradient(gelu_tanh_scalar, &x, &dx_tanh, 1);
    }
}

static void test_gelu_is_the_published_formula_and_near_its_approximation(void **state)
{
    for (double x = -6.0; x <= 6.0; x += 0.37) {
        double tanh_u = tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x));

        assert_true(fabs(ref_gelu(x) - 0.5 * x * (1.0 + erf(x / sqrt(2.0)))) <= 1e-14);
        assert_true(fabs(ref_gelu_tanh(x) - 0.5 * x * (1.0 + tanh_u)) <= 1e-14);
        assert_true(fabs(ref_gelu(x) - ref_gelu_tanh(x)) <= 5e-4);
    }
}

enum { EM_T = 3, EM_N = 2 * EM_T, EM_C = 2, EM_V = 4, EM_ALL = (EM_V + EM_T) * EM_C };
static const int32_t em_tokens[EM_N] = {1, 1, 3, 0, 1, 3};

/* wte, then wpe */
static double embedding_scalar(const double *all)
{
    double out[EM_N * EM_C];

    ref_embedding_forward(out, em_tokens, all, all + EM_V * EM_C, 1.7, EM_N, EM_T, EM_C);
    return mix(out, EM_N * EM_C);
}

static void test_embedding_backward_is_the_slope_of_forward(void **state)
{
    double all[EM_ALL], dall[EM_ALL] = {0}, dout[EM_N * EM_C];

    fill(all, EM_ALL, 0);
    fill(dout, EM_N * EM_C, 1000);
    ref_embedding_backward(dall, dall + EM_V * EM_C, dout, em_tokens, 1.7, EM_N, EM_T, EM_C);
    assert_gradient(embedding_scalar, all, dall, EM_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layernorm_backward_is_the_slope_of_forward),
        cmocka_unit_test(test_matmul_backward_is_the_slope_of_forward),
        cmocka_unit_test(test_attention_backward_is_the_slope_of_forward),
        cmocka_unit_test(test_attention_of_grouped_heads_has_its_slope),
        cmocka_unit_test(test_attention_backward_is_the_slope_of_forward_under_one_dropout_mask),
        cmocka_unit_test(test_cross_entropy_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(test_gelu_is_the_published_formula_and_near_its_approximation),
        cmocka_unit_test(test_gelu_slope_is_the_slope_of_gelu),
        cmocka_unit_test(test_embedding_backward_is_the_slope_of_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
