#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

#include "base/banned.h"

/* elements; three steps, with a copy and without */
void case_adamw(bench *b, const int64_t *dim)
{
    int64_t n = dim[0];
    operand param = bench_random(b, DT_F32, 1.0, n, 0, 0),
            m = bench_random(b, DT_F32, 0.0, n, 0, 0);
    operand v = bench_random(b, DT_F32, 0.0, n, 0, 0), grad = bench_random(b, DT_F32, 1.0, n, 0, 0);
    dt_tensor copy = bench_output(b, b->act, n, 0, 0), none = {0};
    dt_error err = DT_ERROR_INIT;

    for (int64_t step = 1; step <= 3; step++) {
        const dt_optimizer_args args = {.lr = 0.02,
                                        .beta1 = 0.9,
                                        .beta2 = 0.99,
                                        .eps = 1e-8,
                                        .weight_decay = 0.1,
                                        .step = step,
                                        .grad_scale = 0.5};

        bench_ok(b->device.ops->optimizer_step(&b->device, &param.tensor, step == 1 ? &none : &copy,
                                               &m.tensor, &v.tensor, &grad.tensor, &args, &err),
                 &err);
        ref_adamw(param.value, m.value, v.value, grad.value, n, &args);
    }
    bench_check(b, "param", &param.tensor, param.value);
    bench_check(b, "m", &m.tensor, m.value);
    bench_check(b, "v", &v.tensor, v.value);
    bench_check(b, "copy", &copy, param.value);
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
}
