/* list: names every op once, for the declarations, the backends' tables and the tests.
 *
 * X(op) is a member of dt_ops, in the order of ops.h; the tables do not compile if the list and ops.h differ.
 *
 * Adding an op
 *   1. ops.h: its member of dt_ops, with formula, shapes and what it writes
 *   2. here: its line
 *   3. cpu/<stem>.c and cuda/<stem>.cu: one file per backend, DT_CPU_NAME(op) and dt_cuda_<op>
 *   4. tests/ops: a case against double precision; the op tests fail until each op is called
 */
#ifndef DT_ENGINE_OPS_LIST_H
#define DT_ENGINE_OPS_LIST_H

/* Ops that every backend must have. */
#define DT_OPS_NEEDED(X)      \
    X(row_lengths)            \
    X(embedding_forward)      \
    X(embedding_backward)     \
    X(layernorm_forward)      \
    X(layernorm_backward)     \
    X(rmsnorm_forward)        \
    X(rmsnorm_backward)       \
    X(heads_sum)              \
    X(heads_norm_forward)     \
    X(heads_norm_backward)    \
    X(matmul_forward)         \
    X(matmul_backward_input)  \
    X(matmul_backward_weight) \
    X(attention_forward)      \
    X(attention_backward)     \
    X(rotary_forward)         \
    X(rotary_backward)        \
    X(gate_forward)           \
    X(gate_backward)          \
    X(softcap_forward)        \
    X(softcap_backward)       \
    X(activation_forward)     \
    X(activation_backward)    \
    X(dropout_forward)        \
    X(dropout_backward)       \
    X(residual_forward)       \
    X(cross_entropy_forward)  \
    X(cross_entropy_backward) \
    X(cross_entropy_part)     \
    X(cross_entropy_join)     \
    X(squared_error_forward)  \
    X(squared_error_backward) \
    X(optimizer_step)         \
    X(normalize)              \
    X(blend)                  \
    X(sum_squares)            \
    X(sum)                    \
    X(cast)                   \
    X(zero)

/* Fused ops, which only CUDA has. A backend without them leaves NULL. */
#define DT_OPS_FUSED(X)        \
    X(matmul_gelu_forward)     \
    X(matmul_gelu_backward)    \
    X(matmul_residual_forward) \
    X(layernorm_backward_bias) \
    X(attention_backward_bias) \
    X(matmul_first_weight)     \
    X(sum_squares_each)        \
    X(zero_each)

#define DT_OPS(X)    \
    DT_OPS_NEEDED(X) \
    DT_OPS_FUSED(X)

#define DT_OPS_ONE(op) +1
#define DT_OPS_COUNT   (0 DT_OPS(DT_OPS_ONE))

/* For a static assertion in each table: the list has as many ops as the struct. */
#define DT_OPS_LIST_IS_WHOLE (sizeof(dt_ops) == DT_OPS_COUNT * sizeof(void (*)(void)))

#endif
