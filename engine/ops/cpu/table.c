/* table: the CPU's column of ops.h, for one instruction set (isa.h). */
#include "engine/ops/cpu/ops_int.h"

#include "base/banned.h"

#define ENTRY(op) .op = DT_CPU_NAME(op)

extern const dt_ops DT_CPU_TABLE;

const dt_ops DT_CPU_TABLE = {
    ENTRY(embedding_forward),
    ENTRY(embedding_backward),
    ENTRY(layernorm_forward),
    ENTRY(layernorm_backward),
    ENTRY(matmul_forward),
    ENTRY(matmul_backward_input),
    ENTRY(matmul_backward_weight),
    ENTRY(attention_forward),
    ENTRY(attention_backward),
    ENTRY(gelu_forward),
    ENTRY(gelu_backward),
    ENTRY(dropout_forward),
    ENTRY(dropout_backward),
    ENTRY(residual_forward),
    ENTRY(cross_entropy_forward),
    ENTRY(cross_entropy_backward),
    ENTRY(optimizer_step),
    ENTRY(sum_squares),
    ENTRY(sum),
    ENTRY(cast),
    ENTRY(zero),
};
