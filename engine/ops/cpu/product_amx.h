/* product_amx: computes a product of bf16 numbers with AMX, the matrix unit of Intel's server processors.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c], as in product.h
 * Types      a, b and bias: BF16; c: F32, or BF16 without `accumulate`; sums are fp32
 * Method     c is computed in blocks that stay in the L2 cache. For a block, parts of a and b are packed into
 *            tiles of 16 x 32 numbers, filled up with zeros; a step of the inner loop multiplies two tiles of each
 * Order      of a sum: pairs of k in order, as the instruction adds them; it depends on k alone
 * Precision  AMX treats subnormal numbers, in operands and sums, as zero
 * Why        oneDNN's code is 1.5 to 4 times as slow, depending on which operand is transposed, and wrong if k
 *            is not a multiple of 32 (product.c)
 */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_AMX_H
#define DT_ENGINE_OPS_CPU_PRODUCT_AMX_H

#include "engine/ops/cpu/product.h"

/* Needs dt_cpu_amx_offered(). Errors: DT_ERR_NOMEM */
dt_status dt_cpu_product_amx(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, dt_error *err);

/* The same for m of at most 16, with b_transposed: y = x w^T + bias, as in generation. w is read once, as it is
 * stored. The order of a sum depends on k alone here too: a row has the same bits whatever the other rows are. */
dt_status dt_cpu_product_amx_few(dt_device *device, const dt_cpu_product *product, void *y,
                                 const void *x, const void *w, const void *bias, dt_error *err);

#endif
