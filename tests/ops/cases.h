/* cases: one function per op; each runs the op, forward and backward, at one shape. */
#ifndef DT_TESTS_OPS_CASES_H
#define DT_TESTS_OPS_CASES_H

#include "tests/ops/harness.h"

/* dim: the shape's numbers, as the case's comment names them. */
typedef void op_case(bench *b, const int64_t *dim);

/* rows of activations: cases_rows.c */
op_case case_row_lengths, case_embedding, case_embedding_fixed_places, case_embedding_no_places,
    case_layernorm, case_gelu, case_gelu_tanh, case_relu, case_tanh, case_squared_error,
    case_dropout, case_residual, case_cast;
/* products and softmax: cases_products.c */
op_case case_matmul, case_matmul_gelu, case_matmul_residual, case_cross_entropy;
op_case case_attention, case_attention_dropout, case_attention_some_heads, case_attention_views,
    case_attention_switches, case_long_attention;
/* parts of a vocabulary: cases_parts.c */
op_case case_embedding_parts, case_cross_entropy_parts, case_cross_entropy_parts_smoothed;
op_case case_cross_entropy_weighted, case_cross_entropy_parts_weighted;
/* what a product adds: cases_bias.c */
op_case case_matmul_bias;
/* ops of Llama's blocks: cases_llama.c */
op_case case_rmsnorm, case_rotary, case_rotary_normed, case_gate_silu, case_gate_gelu_tanh,
    case_gate_gelu, case_heads_norm, case_softcap;
/* flat fp32 buffers: cases_flat.c */
op_case case_adamw, case_adamw_bf16_moments, case_adamw_fairseq, case_adam, case_adam_fairseq,
    case_sgd, case_sgd_momentum, case_sgd_nesterov, case_lion, case_normalize, case_blend,
    case_sums, case_views, case_zero;

#endif
