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
#ifndef DT_RECIPES_ARCHITECTURE_TRANSFORMER_H
#define DT_RECIPES_ARCHITECTURE_TRANSFORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

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
