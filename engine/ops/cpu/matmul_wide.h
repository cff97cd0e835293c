/* matmul_wide: a product of 16-bit numbers by way of fp32, for processors without code for them.
 *
 * Method     all of b is widened, then rows of a as many at a time as take no more memory than b
 *            did; the products are fp32, and narrowed once where c has 16 bits
 * Precision  that of fp32 sums: nothing is rounded to 16 bits but c
 * Scratch    the device's, up to 2 k n floats
 * Types      product->type BF16 or F16, c_type the same or F32
 */
#ifndef DT_ENGINE_OPS_CPU_MATMUL_WIDE_H
#define DT_ENGINE_OPS_CPU_MATMUL_WIDE_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

dt_status DT_CPU_NAME(matmul_wide)(dt_device *device, const dt_cpu_product *product, void *c,
                                   const void *a, const void *b, const void *bias, dt_error *err);

#endif
