/* matmul_few: y = x w^T + bias where x has few rows, as where a text is made token by token.
 *
 * Method     each row of w is read once, as it lies, and multiplied with every row of x: what it takes is the
 *            reading of w, in 16 bits half of it
 * Order      a sum's depends on k alone: y's rows are the same bits whatever the threads and the other rows
 * Types      product->type of x, w and bias, c_type F32 or the same; sums are fp32
 */
#ifndef DT_ENGINE_OPS_CPU_MATMUL_FEW_H
#define DT_ENGINE_OPS_CPU_MATMUL_FEW_H

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

#define DT_CPU_FEW_ROWS 16

dt_status DT_CPU_NAME(matmul_few)(dt_device *device, const dt_cpu_product *product, void *y,
                                  const void *x, const void *w, const void *bias, dt_error *err);

#endif
