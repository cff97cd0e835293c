/* gpt2: defines the config of kind gpt2 (Radford et al. 2019; fairseq's transformer_lm).
 */
#ifndef DT_RECIPES_ARCHITECTURE_GPT2_H
#define DT_RECIPES_ARCHITECTURE_GPT2_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_model_config;

/* In addition to dt_decoder_config. */
typedef struct dt_gpt2_config {
    dt_activation_kind activation;
    dt_positions_kind positions;
    bool scale_embedding; /* token embeddings times sqrt(embed) */
    int64_t ffn;          /* width inside the multi-layer perceptron; 0: 4 * embed */
    double norm_eps;      /* 0: 1e-5 */
} dt_gpt2_config;

/* Indices in the parameter table, within unit 0 and within a block's unit. */
typedef enum dt_gpt2_root_param {
    DT_GPT2_WTE,
    DT_GPT2_WPE,
    DT_GPT2_LN_F_W,
    DT_GPT2_LN_F_B,
    DT_GPT2_HEAD,
    DT_GPT2_ROOT_PARAMS
} dt_gpt2_root_param;

typedef enum dt_gpt2_block_param {
    DT_GPT2_LN_1_W,
    DT_GPT2_LN_1_B,
    DT_GPT2_ATTN_W,
    DT_GPT2_ATTN_B,
    DT_GPT2_ATTN_PROJ_W,
    DT_GPT2_ATTN_PROJ_B,
    DT_GPT2_LN_2_W,
    DT_GPT2_LN_2_B,
    DT_GPT2_FC_W,
    DT_GPT2_FC_B,
    DT_GPT2_MLP_PROJ_W,
    DT_GPT2_MLP_PROJ_B,
    DT_GPT2_BLOCK_PARAMS
} dt_gpt2_block_param;

/* Returns the config's value, or the default for 0. */
double dt_gpt2_norm_eps(const struct dt_model_config *config);
/* Return what a tensor rank has: the width inside the multi-layer perceptron, and that of attention's output. */
int64_t dt_gpt2_ffn(const struct dt_model_config *config);
int64_t dt_gpt2_attended(const struct dt_model_config *config);
/* Width of the scratch buffer for GELU's output and the gradients of it and of q k v. */
int64_t dt_gpt2_wide(const struct dt_model_config *config);
/* Returns whether the config leaves out a dt_gpt2_root_param (unit 0) or a dt_gpt2_block_param. */
bool dt_gpt2_lacks(const struct dt_model_config *config, int unit, int param);

#ifdef __cplusplus
}
#endif
#endif
