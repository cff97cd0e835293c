#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/optim/optimizer.h"
#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

/* Three steps, the first without a copy. */
static void optimizer(bench *b, int64_t n, dt_optimizer_options options)
{
    const dt_optimizer *optimizer = dt_optimizer_of(options.kind);
    dt_optimizer_args args = {.options = options, .lr = 0.02, .grad_scale = 0.5};
    operand param = bench_random(b, DT_F32, 1.0, n, 0, 0);
    operand grad = bench_random(b, DT_F32, 1.0, n, 0, 0);
    operand m = bench_random(b, DT_F32, 0.0, n, 0, 0), v = bench_random(b, DT_F32, 0.0, n, 0, 0);
    dt_tensor copy = bench_output(b, b->act, n, 0, 0);
    dt_optimizer_part part = {.param = param.tensor,
                              .grad = grad.tensor,
                              .state = {m.tensor, v.tensor},
                              .states = dt_optimizer_states(&options, false)};
    dt_error err = DT_ERROR_INIT;

    args.options.weight_decay = 0.1;
    for (args.step = 1; args.step <= 3; args.step++) {
        dt_optimizer_factors factors;

        optimizer->factors(&factors, &args);
        bench_ok(optimizer->step(&b->device, &part, bench_bytes(b, &factors, sizeof factors), &err),
                 &err);
        ref_optimizer(param.value, m.value, v.value, grad.value, n, &args);
        part.copy = copy;
    }
    bench_check(b, "param", &param.tensor, param.value);
    if (part.states > 0)
        bench_check(b, "m", &m.tensor, m.value);
    if (part.states > 1)
        bench_check(b, "v", &v.tensor, v.value);
    bench_check(b, "copy", &copy, param.value);
}

/* elements; an epsilon large enough for its place in the formula to show */
static const dt_optimizer_options adam_options = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-2};

void case_adamw(bench *b, const int64_t *dim)
{
    optimizer(b, dim[0], adam_options);
}

void case_adamw_fairseq(bench *b, const int64_t *dim)
{
    dt_optimizer_options options = adam_options;

    options.variant = DT_OPTIMIZER_FAIRSEQ;
    optimizer(b, dim[0], options);
}

/* Rounded up or down from `want`, the numbers in fp32 up to their own error, and as often up as down on average. */
static void check_rounding(const dt_tensor *got, const double *want, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++) {
        double off = bench_element(got, i) - want[i], unit;
        int exponent;

        (void)frexp(want[i], &exponent);
        unit = ldexp(1.0, exponent - 8); /* 8 bits */
        assert_true(fabs(off) <= unit * 1.001);
        sum += off / unit;
    }
    assert_true(fabs(sum) <=
                2.5 * sqrt((double)n) + 0.001 * (double)n); /* five deviations of a half */
}

/* elements; states in bf16. Each step starts from the numbers that the last one left */
void case_adamw_bf16_moments(bench *b, const int64_t *dim)
{
    int64_t n = dim[0], odd = n % 2; /* parts of a unit start at any element */
    dt_optimizer_args args = {.options = adam_options, .lr = 0.02, .grad_scale = 0.5};
    operand param = bench_random(b, DT_F32, 1.0, n, 0, 0);
    operand grad = bench_random(b, DT_F32, 1.0, n, 0, 0);
    dt_tensor whole[] = {bench_random(b, DT_BF16, 0.0, n + 1, 0, 0).tensor,
                         bench_random(b, DT_BF16, 0.0, n + 1, 0, 0).tensor};
    dt_optimizer_part part = {.param = param.tensor, .grad = grad.tensor, .states = 2};
    dt_tensor copy = bench_output(b, b->act, n, 0, 0);
    double *states[] = {bench_doubles(b, n), bench_doubles(b, n)};
    dt_error err = DT_ERROR_INIT;

    for (int s = 0; s < 2; s++)
        part.state[s] = dt_tensor_1d((uint16_t *)whole[s].data + odd, DT_BF16, n);
    part.copy = copy;
    args.options.weight_decay = 0.1;
    for (args.step = 1; args.step <= 3; args.step++) {
        dt_optimizer_factors factors;

        for (int64_t i = 0; i < n; i++) {
            param.value[i] = bench_element(&param.tensor, i);
            for (int s = 0; s < 2; s++)
                states[s][i] = bench_element(&part.state[s], i);
        }
        dt_adamw_factors(&factors, &args);
        bench_ok(dt_adamw_step(&b->device, &part, bench_bytes(b, &factors, sizeof factors), &err),
                 &err);
        ref_optimizer(param.value, states[0], states[1], grad.value, n, &args);
        bench_check(b, "param", &param.tensor, param.value);
        bench_check(b, "copy", &copy, param.value);
        for (int s = 0; s < 2; s++) {
            check_rounding(&part.state[s], states[s], n);
            for (int64_t i = 0; i < n; i++) /* their bits must repeat, too */
                states[s][i] = bench_element(&part.state[s], i);
            bench_check(b, s == 0 ? "m" : "v", &part.state[s], states[s]);
        }
    }
}

void case_adam(bench *b, const int64_t *dim)
{
    dt_optimizer_options options = adam_options;

    options.kind = DT_OPTIMIZER_ADAM;
    optimizer(b, dim[0], options);
}

void case_adam_fairseq(bench *b, const int64_t *dim)
{
    dt_optimizer_options options = adam_options;

    options.kind = DT_OPTIMIZER_ADAM;
    options.variant = DT_OPTIMIZER_FAIRSEQ;
    optimizer(b, dim[0], options);
}

void case_sgd(bench *b, const int64_t *dim)
{
    optimizer(b, dim[0], (dt_optimizer_options){.kind = DT_OPTIMIZER_SGD});
}

void case_sgd_momentum(bench *b, const int64_t *dim)
{
    optimizer(b, dim[0], (dt_optimizer_options){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9});
}

void case_sgd_nesterov(bench *b, const int64_t *dim)
{
    optimizer(b, dim[0],
              (dt_optimizer_options){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9, .nesterov = true});
}

void case_lion(bench *b, const int64_t *dim)
{
    optimizer(b, dim[0],
              (dt_optimizer_options){.kind = DT_OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99});
}

/* elements */
void case_normalize(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand x = bench_random(b, DT_F32, 3.0, n, 0, 0);
    dt_tensor out = bench_output(b, b->act, n, 0, 0), zeros = bench_output(b, b->act, n, 0, 0);
    double *want = bench_doubles(b, n), squares = 0;
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++)
        squares += x.value[i] * x.value[i];
    for (int64_t i = 0; i < n; i++)
        want[i] = x.value[i] / sqrt(squares);
    bench_ok(b->device.ops->normalize(&b->device, &out, &x.tensor, 1e-7, &err), &err);
    bench_check(b, "out", &out, want);
    x = bench_random(b, DT_F32, 0.0, n, 0, 0);
    bench_ok(b->device.ops->normalize(&b->device, &zeros, &x.tensor, 1e-7, &err), &err);
    bench_check(b, "zeros", &zeros, bench_doubles(b, n));
}

/* elements */
void case_blend(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand x = bench_random(b, b->act, 1.0, n, 0, 0), y = bench_random(b, b->act, 1.0, n, 0, 0);
    dt_error err = DT_ERROR_INIT;

    bench_ok(b->device.ops->blend(&b->device, &y.tensor, &x.tensor, 3.25, -0.5, &err), &err);
    for (int64_t i = 0; i < n; i++)
        y.value[i] = 3.25 * x.value[i] - 0.5 * y.value[i];
    bench_check(b, "y", &y.tensor, y.value);
}

/* elements: the sums are doubles, so they are compared as such */
void case_sums(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand x = bench_random(b, DT_F32, 100.0, n, 0, 0);
    double sum = 0.0, squares = 0.0, sizes = 0.0, got = NAN;
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        sum += x.value[i];
        squares += x.value[i] * x.value[i];
        sizes += fabs(x.value[i]);
    }
    bench_ok(b->device.ops->sum(&b->device, &got, &x.tensor, &err), &err);
    assert_true(fabs(got - sum) <= 1e-12 * sizes);
    bench_ok(b->device.ops->sum_squares(&b->device, &got, &x.tensor, &err), &err);
    assert_true(fabs(got - squares) <= 1e-12 * squares);
    if (b->device.ops->sum_squares_each != NULL) {
        dt_tensor parts[] = {x.tensor, dt_tensor_1d(x.tensor.data, DT_F32, n / 2), x.tensor};
        double each[3], half;

        bench_ok(b->device.ops->sum_squares(&b->device, &half, &parts[1], &err), &err);
        bench_ok(b->device.ops->sum_squares_each(&b->device, each, parts, 3, &err), &err);
        assert_true(each[0] == got && each[1] == half && each[2] == got);
    }
}

static dt_tensor from_second(const dt_tensor *x)
{
    unsigned char *data = x->data;

    return dt_tensor_1d(data + dt_dtype_bytes(x->dtype), x->dtype, dt_tensor_elems(x) - 1);
}

/* elements: of tensors that begin unaligned, as parts of a unit may */
void case_views(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    const dt_ops *ops = b->device.ops;
    operand x = bench_random(b, b->act, 1.0, n + 1, 0, 0);
    operand z = bench_random(b, b->act, 1.0, n + 1, 0, 0);
    operand param = bench_random(b, DT_F32, 1.0, n + 1, 0, 0);
    operand grad = bench_random(b, DT_F32, 1.0, n + 1, 0, 0);
    dt_tensor y = bench_output(b, b->act, n + 1, 0, 0), copy = bench_output(b, b->act, n + 1, 0, 0);
    dt_tensor from[] = {from_second(&x.tensor), from_second(&z.tensor), from_second(&grad.tensor)};
    dt_tensor to[] = {from_second(&y), from_second(&param.tensor), from_second(&copy)};
    dt_optimizer_factors factors = {.lr = 0.02f, .grad_scale = 0.5f};
    double *want = bench_doubles(b, n);
    dt_error err = DT_ERROR_INIT;

    bench_ok(ops->residual_forward(&b->device, &to[0], &from[0], &from[1], &err), &err);
    for (int64_t i = 0; i < n; i++)
        want[i] = x.value[i + 1] + z.value[i + 1];
    bench_check(b, "a sum", &to[0], want);
    bench_ok(ops->optimizer_step(&b->device, DT_RULE_PLAIN, &to[1], &to[2], NULL, &from[2],
                                 bench_bytes(b, &factors, sizeof factors), &err),
             &err);
    for (int64_t i = 0; i < n; i++)
        want[i] = param.value[i + 1] - 0.02 * 0.5 * grad.value[i + 1];
    bench_check(b, "a step", &to[1], want);
    bench_check(b, "its copy", &to[2], want);
}

/* 70 ranges of a tensor with an element between them, the last one of many elements, if the backend has the op. */
static void zero_each(bench *b, int64_t n)
{
    int64_t most = ((int64_t)1 << 20) + 5, small = n % 97 + 1, each = small + 1;
    int64_t last = n > 100000 ? most : small, all = 69 * each + last + 1;
    dt_tensor x = bench_output(b, DT_F32, all, 0, 0), ranges[70];
    dt_error err = DT_ERROR_INIT;

    if (b->device.ops->zero_each == NULL)
        return;
    for (int i = 0; i < 70; i++)
        ranges[i] = dt_tensor_1d((float *)x.data + i * each, DT_F32, i < 69 ? small : last);
    bench_ok(b->device.ops->zero_each(&b->device, ranges, 70, &err), &err);
    for (int i = 0; i < 70; i++) {
        const float *range = ranges[i].data;

        bench_check(b, "a range", &ranges[i], bench_doubles(b, dt_tensor_elems(&ranges[i])));
        assert_true(isnan(range[dt_tensor_elems(&ranges[i])])); /* and not an element further */
    }
}

/* elements */
void case_zero(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    dt_tensor x = bench_output(b, b->act, n + 1, 0, 0), part = x;
    size_t bytes = dt_dtype_bytes(b->act);
    dt_error err = DT_ERROR_INIT;

    part.dim[0] = n;
    bench_ok(b->device.ops->zero(&b->device, &part, &err), &err);
    bench_check(b, "x", &part, bench_doubles(b, n));
    for (size_t i = 0; i < bytes; i++) /* and not a byte further */
        assert_int_equal(((unsigned char *)x.data)[(size_t)n * bytes + i], 0xff);
    zero_each(b, n);
}
