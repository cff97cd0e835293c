/* matmul_int: the two ways to a product that matmul.c chooses from beside product.h. */
#ifndef DT_ENGINE_OPS_CPU_MATMUL_INT_H
#define DT_ENGINE_OPS_CPU_MATMUL_INT_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

/* matmul_few: y = x w^T + bias where x has few rows, as where a text is made token by token.
 *
 * Method     each row of w is read once, as it lies, and multiplied with every row of x: what it takes is the
 *            reading of w, in 16 bits half of it
 * Order      a sum's depends on k alone: y's rows are the same bits whatever the threads and the other rows
 * Types      product->type of x, w and bias, c_type F32 or the same; sums are fp32
 */

#define DT_CPU_FEW_ROWS 16

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err);

/* matmul_wide: a product of 16-bit numbers by way of fp32, for processors without code for them.
 *
 * Method     all of b is widened, then rows of a as many at a time as take no more memory than b
 *            did; the products are fp32, and narrowed once where c has 16 bits
 * Precision  that of fp32 sums: nothing is rounded to 16 bits but c
 * Scratch    the device's, up to 2 k n floats
 * Types      product->type BF16 or F16, c_type the same or F32
 */

dt_status DT_CPU_NAME(matmul_wide)(dt_device *device, const dt_cpu_product *product, void *c,
                                   const void *a, const void *b, const void *bias, dt_error *err);

#endif
