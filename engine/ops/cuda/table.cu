/* table: CUDA's column of ops.h. */
#include "engine/ops/cuda/table.cuh"

#define ENTRY(op) ops.op = DT_CUDA_NAME(op)

static dt_ops make()
{
    dt_ops ops = {};

    ENTRY(embedding_forward);
    ENTRY(embedding_backward);
    ENTRY(layernorm_forward);
    ENTRY(layernorm_backward);
    ENTRY(matmul_forward);
    ENTRY(matmul_backward_input);
    ENTRY(matmul_backward_weight);
    ENTRY(attention_forward);
    ENTRY(attention_backward);
    ENTRY(gelu_forward);
    ENTRY(gelu_backward);
    ENTRY(dropout_forward);
    ENTRY(dropout_backward);
    ENTRY(residual_forward);
    ENTRY(cross_entropy_forward);
    ENTRY(cross_entropy_backward);
    ENTRY(optimizer_step);
    ENTRY(sum_squares);
    ENTRY(sum);
    ENTRY(cast);
    ENTRY(zero);
    ENTRY(matmul_gelu_forward);
    ENTRY(matmul_gelu_backward);
    ENTRY(sum_squares_each);
    return ops;
}

const dt_ops *dt_cuda_ops()
{
    static const dt_ops ops = make();

    return &ops;
}
