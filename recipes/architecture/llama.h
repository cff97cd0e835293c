/* llama: defines the config of kind llama (Touvron et al. 2023; Llama 3; Qwen2 and Qwen3 by switches).
 *
 * H heads of queries and G of keys, each of width D; F is the width inside the multi-layer perceptron.
 */
#ifndef DT_RECIPES_ARCHITECTURE_LLAMA_H
#define DT_RECIPES_ARCHITECTURE_LLAMA_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_model_config;

/* In addition to dt_decoder_config. */
typedef struct dt_llama_config {
    int64_t kv_heads, head_width, ffn;
    double norm_eps;
    double rope_theta;
    dt_rope_scaling_kind rope_scaling;
    double rope_factor, rope_low_freq_factor, rope_high_freq_factor;
    int64_t rope_original_tokens;
    bool qkv_bias; /* Qwen2 */
    bool o_bias;   /* of attention's output projection */
    bool mlp_bias;
    bool qk_norm; /* Qwen3: norm before the rotation, with one weight for all heads */
} dt_llama_config;

/* Indices in the parameter table, within unit 0 and within a block's unit. Matrices with the same input are
 * contiguous (dt_param_shape.joined), so that they also form one matrix: q, k and v; gate and up; and their
 * biases. */
typedef enum dt_llama_root_param {
    DT_LLAMA_EMBED,
    DT_LLAMA_NORM,
    DT_LLAMA_HEAD,
    DT_LLAMA_ROOT_PARAMS
} dt_llama_root_param;

typedef enum dt_llama_block_param {
    DT_LLAMA_NORM_1,
    DT_LLAMA_Q_W,
    DT_LLAMA_K_W,
    DT_LLAMA_V_W,
    DT_LLAMA_Q_B,
    DT_LLAMA_K_B,
    DT_LLAMA_V_B,
    DT_LLAMA_Q_NORM,
    DT_LLAMA_K_NORM,
    DT_LLAMA_O_W,
    DT_LLAMA_O_B,
    DT_LLAMA_NORM_2,
    DT_LLAMA_GATE_W,
    DT_LLAMA_UP_W,
    DT_LLAMA_GATE_B,
    DT_LLAMA_UP_B,
    DT_LLAMA_DOWN_W,
    DT_LLAMA_DOWN_B,
    DT_LLAMA_BLOCK_PARAMS
} dt_llama_block_param;

/* Returns whether the config leaves out a dt_llama_root_param (unit 0) or a dt_llama_block_param. */
bool dt_llama_lacks(const struct dt_model_config *config, int unit, int param);

/* Return what a tensor rank has: heads of keys, the width inside the multi-layer perceptron, and the columns of a
 * token's queries, of its keys, and of queries, keys and values together. */
int64_t dt_llama_kv_heads(const struct dt_model_config *config);
int64_t dt_llama_ffn(const struct dt_model_config *config);
int64_t dt_llama_q_width(const struct dt_model_config *config);
int64_t dt_llama_kv_width(const struct dt_model_config *config);
int64_t dt_llama_qkv_width(const struct dt_model_config *config);

#ifdef __cplusplus
}
#endif
#endif
