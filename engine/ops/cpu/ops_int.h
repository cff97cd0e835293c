/* ops_int: every op of the table, declared once per instruction set with the type that ops.h
 * gives it.
 */
#ifndef DT_ENGINE_OPS_CPU_OPS_INT_H
#define DT_ENGINE_OPS_CPU_OPS_INT_H

#include "engine/ops/cpu/cpu_int.h"

#define DT_CPU_DECLARE(op) extern __typeof__(*((dt_ops *)0)->op) DT_CPU_NAME(op)

DT_CPU_DECLARE(embedding_forward);
DT_CPU_DECLARE(embedding_backward);
DT_CPU_DECLARE(layernorm_forward);
DT_CPU_DECLARE(layernorm_backward);
DT_CPU_DECLARE(matmul_forward);
DT_CPU_DECLARE(matmul_backward_input);
DT_CPU_DECLARE(matmul_backward_weight);
DT_CPU_DECLARE(attention_forward);
DT_CPU_DECLARE(attention_backward);
DT_CPU_DECLARE(gelu_forward);
DT_CPU_DECLARE(gelu_backward);
DT_CPU_DECLARE(dropout_forward);
DT_CPU_DECLARE(dropout_backward);
DT_CPU_DECLARE(residual_forward);
DT_CPU_DECLARE(cross_entropy_forward);
DT_CPU_DECLARE(cross_entropy_backward);
DT_CPU_DECLARE(optimizer_step);
DT_CPU_DECLARE(sum_squares);
DT_CPU_DECLARE(sum);
DT_CPU_DECLARE(cast);
DT_CPU_DECLARE(zero);

#endif
