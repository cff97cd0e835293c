/* matmul_int: declares the two products that matmul.c chooses from in addition to oneDNN
 * (product.h). */
#ifndef DT_ENGINE_OPS_CPU_MATMUL_INT_H
#define DT_ENGINE_OPS_CPU_MATMUL_INT_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

/* matmul_few: y = x w^T + bias for few rows of x, as in generation token by token.
 *
 * Method     each row of w is read once, in its own type, and multiplied with every row of x: reading w takes
 *            most of the time, half of it if w has 16 bits
 * Order      the order of a sum depends on k alone: a row of y has the same bits for any thread count, and for any
 *            other rows
 * Types      product->type for x, w and bias; c_type is F32 or the same type; sums are in fp32
 */

#define DT_CPU_FEW_ROWS 64

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err);

/* matmul_wide: a product of 16-bit numbers, computed in fp32, for processors on which oneDNN has no code for them.
 *
 * Method     widens all of b, then as many rows of a at a time as take no more memory than b; the products
 *            are in fp32, and narrowed once if c has 16 bits
 * Precision  that of fp32 sums: only c is rounded to 16 bits
 * Scratch    that of the device, up to 2 k n floats
 * Types      product->type BF16 or F16, c_type the same or F32
 */

dt_status DT_CPU_NAME(matmul_wide)(dt_device *device, const dt_cpu_product *product, void *c,
                                   const void *a, const void *b, const void *bias, dt_error *err);

#endif
