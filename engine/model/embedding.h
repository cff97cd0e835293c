/* embedding: embeds tokens, of whose vocabulary a rank may have a part. */
#ifndef DT_ENGINE_MODEL_EMBEDDING_H
#define DT_ENGINE_MODEL_EMBEDDING_H

#include "engine/model/linear.h"

/* The part of a vocabulary of `vocab` tokens in the `rows` rows that this rank has of a divided embedding or head. */
dt_vocab_part dt_layer_vocab(const dt_model *model, int64_t rows, int64_t vocab);


/* These two compute with what this rank holds, and sum; `terms` as for dt_layer_term. */
/* Embed tokens of a vocabulary of `vocab`, with op embedding_forward; one rank adds the positions. */
dt_status dt_layer_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                         const dt_tensor *words, const dt_tensor *positions, double scale,
                         int64_t vocab, const dt_tensor *terms, dt_error *err);
/* Adds to the gradients of its parameters: of this rank's words, and of all positions, which may be empty. */
dt_status dt_layer_embed_backward(dt_model *model, dt_tensor *dwords, dt_tensor *dpositions,
                                  const dt_tensor *dy, const dt_tensor *tokens, double scale,
                                  int64_t vocab, dt_error *err);

#endif
