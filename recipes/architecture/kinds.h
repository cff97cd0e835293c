/* kinds: defines the config of each kind of model (recipes/fields/model_table.h). A new kind adds its
 * struct here. */
#ifndef DT_RECIPES_ARCHITECTURE_KINDS_H
#define DT_RECIPES_ARCHITECTURE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpt2: defines the config of kind gpt2 (Radford et al. 2019; fairseq's transformer_lm).
 */

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

/* llama: defines the config of kind llama (Touvron et al. 2023), and by switches of the models of families.c.
 *
 * H heads of queries and G of keys, each of width D; F is the width inside the multi-layer perceptron.
 */

struct dt_model_config;

/* In addition to dt_decoder_config. */
typedef struct dt_llama_config {
    int64_t kv_heads, head_width, ffn;
    double norm_eps;
    bool scale_embedding; /* token embeddings times sqrt(embed) */
    DT_SWITCHES(DT_SWITCH_MEMBER)
} dt_llama_config;

/* Indices in the parameter table, within unit 0 and within a block's unit. Matrices with the same input are
 * contiguous (dt_param_shape.joined), so that they also form one matrix: q, k and v; gate and up; and their
 * biases. */
typedef enum dt_llama_root_param {
    DT_LLAMA_EMBED,
    DT_LLAMA_NORM,
    DT_LLAMA_NORM_B, /* a bias follows its norm */
    DT_LLAMA_HEAD,
    DT_LLAMA_ROOT_PARAMS
} dt_llama_root_param;

typedef enum dt_llama_block_param {
    DT_LLAMA_NORM_1,
    DT_LLAMA_NORM_1_B,
    DT_LLAMA_Q_W,
    DT_LLAMA_K_W,
    DT_LLAMA_V_W,
    DT_LLAMA_Q_B,
    DT_LLAMA_K_B,
    DT_LLAMA_V_B,
    DT_LLAMA_Q_NORM, /* of each head */
    DT_LLAMA_K_NORM,
    DT_LLAMA_Q_NORM_WHOLE, /* or of all heads together */
    DT_LLAMA_K_NORM_WHOLE,
    DT_LLAMA_O_W,
    DT_LLAMA_O_B,
    DT_LLAMA_AFTER_1, /* norms of the outputs of attention, and of the perceptron */
    DT_LLAMA_NORM_2,
    DT_LLAMA_NORM_2_B,
    DT_LLAMA_GATE_W,
    DT_LLAMA_UP_W,
    DT_LLAMA_GATE_B,
    DT_LLAMA_UP_B,
    DT_LLAMA_DOWN_W,
    DT_LLAMA_DOWN_B,
    DT_LLAMA_AFTER_2,
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

/* Whether blocks have norms before, and after, attention and perceptron. */
bool dt_llama_norms_before(const struct dt_model_config *config);
bool dt_llama_norms_after(const struct dt_model_config *config);
/* The tokens that block `layer` sees, with itself; 0: all. */
int64_t dt_llama_window(const struct dt_model_config *config, int64_t layer);
/* Elements of a head that are rotated. */
int64_t dt_llama_turned(const struct dt_model_config *config);
/* Factors of embeddings, of what a block adds, of scores (0: 1/sqrt(D)) and of logits. */
double dt_llama_embedding_factor(const struct dt_model_config *config);
double dt_llama_residual_factor(const struct dt_model_config *config);
double dt_llama_score_factor(const struct dt_model_config *config);
double dt_llama_logits_factor(const struct dt_model_config *config);

/* Tables of angles: blocks have different ones. */
typedef enum dt_llama_angles {
    DT_LLAMA_ANGLES_ALL,   /* of all blocks but the following */
    DT_LLAMA_ANGLES_LOCAL, /* of blocks with a window, if rope_local_theta is given */
    DT_LLAMA_ANGLES_NONE,  /* of blocks without rotary positions: no rotation */
    DT_LLAMA_ANGLES_KINDS
} dt_llama_angles;
dt_llama_angles dt_llama_angles_of(const struct dt_model_config *config, int64_t layer);
/* Number of tables that the config needs, from the first on. */
int64_t dt_llama_angle_tables(const struct dt_model_config *config);

/* mlp: defines the config of kind mlp: rows of numbers pass through layers of one width.
 *
 *   row (I) ─ layer 0 ─ activation ─ ... ─ layer L-1 ─ activation ─ head (O) ─ loss
 *
 * L layers, W width, I inputs, O outputs.
 */

typedef struct dt_mlp_config {
    int64_t layers, width, inputs, outputs;
    dt_activation_kind activation;
    dt_loss_kind loss;
} dt_mlp_config;

/* Indices in the parameter table, within every unit: unit 0 is the head, unit l+1 is layer l. */
typedef enum dt_mlp_param { DT_MLP_W, DT_MLP_B } dt_mlp_param;

/* Indices in dt_batch. Targets: a class (below 0: not counted), or the numbers to predict (NaN: not counted). */
typedef enum dt_mlp_input { DT_MLP_ROWS, DT_MLP_TARGETS, DT_MLP_INPUTS } dt_mlp_input;

/* transformer: defines the config of kind transformer: encoder and decoder, as in fairseq's translation
 * models (Vaswani et al. 2017).
 *
 * A batch    source ids (B,S), each row ended by `pad`; previous ids (B,T), the targets shifted by one after
 *            the end of sentence, ended by `pad`; targets (B,T), ended by -1. S and T are
 *            config.tokens at most, B S and B T each config.batch * config.tokens at most. A row of source has
 *            at least one id that is not padding
 * Padding    attention masks the source's padding, and the loss ignores targets below 0
 * Positions  fairseq's: padding ids have no position and are not counted
 */

struct dt_model_config;

/* In addition to dt_decoder_config, whose layers are for the encoder and whose vocabulary is for the targets. */
typedef struct dt_transformer_config {
    int64_t decoder_layers, ffn;
    int64_t source_vocab, source_vocab_padded;
    int64_t pad; /* an id of both vocabularies */
    dt_activation_kind activation;
    dt_positions_kind positions;
    dt_norm_kind norm;
    bool scale_embedding;   /* token embeddings times sqrt(embed) */
    bool shared_embeddings; /* source embedding, target embedding and head are one matrix */
    double label_smoothing;
} dt_transformer_config;

/* Indices in dt_batch. */
typedef enum dt_transformer_input {
    DT_TRANSFORMER_SOURCE,
    DT_TRANSFORMER_PREVIOUS,
    DT_TRANSFORMER_TARGETS,
    DT_TRANSFORMER_INPUTS
} dt_transformer_input;

/* Indices in the parameter table, within unit 0 and within a block's unit. The encoder's blocks are units
 * 1 .. layers, the decoder's follow. */
typedef enum dt_transformer_root_param {
    DT_TRANSFORMER_SOURCE_EMBED,
    DT_TRANSFORMER_SOURCE_POSITIONS,
    DT_TRANSFORMER_EMBED,
    DT_TRANSFORMER_POSITIONS,
    DT_TRANSFORMER_ENCODER_NORM_W,
    DT_TRANSFORMER_ENCODER_NORM_B,
    DT_TRANSFORMER_DECODER_NORM_W,
    DT_TRANSFORMER_DECODER_NORM_B,
    DT_TRANSFORMER_HEAD,
    DT_TRANSFORMER_ROOT_PARAMS
} dt_transformer_root_param;

typedef enum dt_transformer_block_param {
    DT_TRANSFORMER_Q_W,
    DT_TRANSFORMER_K_W,
    DT_TRANSFORMER_V_W,
    DT_TRANSFORMER_Q_B,
    DT_TRANSFORMER_K_B,
    DT_TRANSFORMER_V_B,
    DT_TRANSFORMER_OUT_W,
    DT_TRANSFORMER_OUT_B,
    DT_TRANSFORMER_SELF_NORM_W,
    DT_TRANSFORMER_SELF_NORM_B,
    DT_TRANSFORMER_CROSS_Q_W, /* only in the decoder, up to CROSS_NORM_B */
    DT_TRANSFORMER_CROSS_Q_B,
    DT_TRANSFORMER_CROSS_K_W,
    DT_TRANSFORMER_CROSS_V_W,
    DT_TRANSFORMER_CROSS_K_B,
    DT_TRANSFORMER_CROSS_V_B,
    DT_TRANSFORMER_CROSS_OUT_W,
    DT_TRANSFORMER_CROSS_OUT_B,
    DT_TRANSFORMER_CROSS_NORM_W,
    DT_TRANSFORMER_CROSS_NORM_B,
    DT_TRANSFORMER_FC_W,
    DT_TRANSFORMER_FC_B,
    DT_TRANSFORMER_PROJ_W,
    DT_TRANSFORMER_PROJ_B,
    DT_TRANSFORMER_FFN_NORM_W,
    DT_TRANSFORMER_FFN_NORM_B,
    DT_TRANSFORMER_BLOCK_PARAMS
} dt_transformer_block_param;

/* Return what a tensor rank has: the width inside the perceptron, and that of attention's output. */
int64_t dt_transformer_ffn(const struct dt_model_config *config);
int64_t dt_transformer_attended(const struct dt_model_config *config);
/* Returns whether the config leaves out a dt_transformer_root_param (unit 0) or a dt_transformer_block_param. */
bool dt_transformer_lacks(const struct dt_model_config *config, int unit, int param);

#ifdef __cplusplus
}
#endif

#endif
