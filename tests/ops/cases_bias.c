#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

/* Returns x from element `skip` on. */
static dt_tensor from(const dt_tensor *x, int64_t skip, int64_t elems)
{
    unsigned char *data = x->data;

    return dt_tensor_1d(data + (size_t)skip * dt_dtype_bytes(x->dtype), x->dtype, elems);
}

/* N I O: products that differ only in the start of the bias, the best alignment first (an algorithm
 * chosen for one may not work for the next), and one whose y is wider than the bias. */
void case_matmul_bias(bench *b, const int64_t *dim)
{
    const int64_t begins[] = {0, 4, 1};
    int64_t n = dim[0], i = dim[1], o = dim[2];
    const dt_ops *ops = b->device.ops;
    operand x = bench_random(b, b->act, 1.0, n, i, 0), w = bench_random(b, b->act, 1.0, o, i, 0);
    operand bias = bench_random(b, b->act, 1.0, o + 4, 0, 0);
    dt_tensor wide_y = bench_output(b, DT_F32, n, o, 0), first = from(&bias.tensor, 0, o);
    double *want = bench_doubles(b, n * o);
    dt_error err = DT_ERROR_INIT;

    for (size_t k = 0; k < sizeof begins / sizeof begins[0]; k++) {
        dt_tensor y = bench_output(b, b->act, n, o, 0), part = from(&bias.tensor, begins[k], o);

        ref_matmul_forward(want, x.value, w.value, bias.value + begins[k], n, i, o);
        bench_ok(ops->matmul_forward(&b->device, &y, &x.tensor, &w.tensor, &part, &err), &err);
        bench_check(b, "y", &y, want);
    }
    ref_matmul_forward(want, x.value, w.value, bias.value, n, i, o);
    bench_ok(ops->matmul_forward(&b->device, &wide_y, &x.tensor, &w.tensor, &first, &err), &err);
    bench_check(b, "y in fp32", &wide_y, want);
}
