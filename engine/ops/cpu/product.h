/* product: the matrix product of the CPU, by oneDNN: its primitives, made once per shape and kept,
 * or its BLAS interface where that is faster.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c]
 * Shapes     a lies as (m,k), or as (k,m) where a_transposed; b as (k,n), or as (n,k). All plain
 *            row-major: oneDNN's kernels for AVX-512, with and without bf16 instructions, take
 *            these within about a tenth of the speed of packed layouts (docs/performance.md)
 * Types      a and b: type; c: c_type; bias: type. Sums are fp32.
 * Lacking    oneDNN has no fast code for bf16 without AVX-512, nor for f16 without its own
 *            instructions (AVX512-FP16), and its code for AMX is wrong where k is not a multiple
 *            of 32: matmul_int.h has code for these
 * Threads    the device's; called outside a parallel region
 * Errors     DT_ERR_UNSUPPORTED where oneDNN refuses, with its status; DT_ERR_NOMEM
 */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_H
#define DT_ENGINE_OPS_CPU_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/device/device.h"
#include "engine/tensor.h"

typedef struct dt_cpu_product {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    bool accumulate, bias;
    dt_dtype type, c_type;
} dt_cpu_product;

struct dt_cpu_products;

dt_status dt_cpu_products_new(struct dt_cpu_products **out, dt_error *err);
void dt_cpu_products_free(struct dt_cpu_products *products);

/* bias is read where product->bias. *done: false where code for the type is lacking; c is then as
 * it was. fp32 is never lacking. */
dt_status dt_cpu_product_run(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, bool *done,
                             dt_error *err);

#endif
