/* product: computes a matrix product on the CPU with oneDNN: with a primitive, created once per shape
 * and kept, or with the BLAS interface if that is faster.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c]
 * Shapes     a is stored as (m,k), or as (k,m) if a_transposed; b as (k,n), or as (n,k) if b_transposed.
 *            All are row-major: with these, oneDNN's AVX-512 kernels, with and without bf16
 *            instructions, are within a tenth of the speed of packed layouts (docs/notes/training.md)
 * Types      a and b: type; c: c_type; bias: type. Sums are fp32.
 * Missing    oneDNN has no fast code for bf16 without AVX-512, nor for f16 without AVX512-FP16, and its
 *            AMX code is wrong if k is not a multiple of 32: matmul_int.h has code for these. Where there is AMX,
 *            product_amx.h computes bf16
 * Threads    those of the device; called outside a parallel region
 * Errors     DT_ERR_UNSUPPORTED with oneDNN's status if it refuses; DT_ERR_NOMEM
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

/* Computes the product. bias is read only if product->bias. Sets *done to false, and leaves c
 * unchanged, if there is no usable code for the type; there always is for fp32. */
dt_status dt_cpu_product_run(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, bool *done,
                             dt_error *err);

#endif
