/* llama: what a config of kind llama has of its own (Touvron et al. 2023; Llama 3; Qwen2 and Qwen3
 * by their switches).
 *
 * H heads of queries and G of keys, D wide each; F the width inside the multi-layer perceptron.
 */
#ifndef DT_RECIPES_ARCHITECTURE_LLAMA_H
#define DT_RECIPES_ARCHITECTURE_LLAMA_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_model_config;

/* Beside its dt_decoder_config. */
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
    bool qk_norm; /* Qwen3: before the rotation, a weight for all heads */
} dt_llama_config;

/* Places in the parameter table, within unit 0 and within a block's unit. Matrices of one input lie
 * one behind the other (dt_param_shape.joined), so that they are one matrix as well: q, k and v, gate and up,
 * and the biases of both. */
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

/* Whether the config leaves a dt_llama_root_param (unit 0) or a dt_llama_block_param out. */
bool dt_llama_lacks(const struct dt_model_config *config, int unit, int param);

/* Columns of what is made of a token: all queries, all keys, and queries, keys and values side by side. */
int64_t dt_llama_q_width(const struct dt_model_config *config);
int64_t dt_llama_kv_width(const struct dt_model_config *config);
int64_t dt_llama_qkv_width(const struct dt_model_config *config);

#ifdef __cplusplus
}
#endif
#endif
