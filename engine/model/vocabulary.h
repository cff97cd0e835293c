/* vocabulary: what kinds that read and predict tokens share at both ends of a pass: embeddings, tables of
 * positions, and the head. */
#ifndef DT_ENGINE_MODEL_VOCABULARY_H
#define DT_ENGINE_MODEL_VOCABULARY_H

#include "engine/model/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- embeddings of tokens, of whose vocabulary a rank may have a part */

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

/* sinusoids: computes fixed sinusoidal positions (Vaswani et al. 2017) as in fairseq.
 *
 * Ownership  the caller owns the table
 */

/* One row: sin(pos f_0) .. sin(pos f_{h-1}), cos(pos f_0) .. cos(pos f_{h-1}), then a zero if
 * `embed` is odd; h = embed / 2 (at least 2), f_i = 10000^(-i/(h-1)). */
void dt_sinusoids_row(float *out, int64_t position, int64_t embed);
/* Fill table (positions,embed), of any type, starting at position `first`; waits for the device. */
dt_status dt_sinusoids_fill(dt_device *device, dt_tensor *table, int64_t first, dt_error *err);

/* token_head: computes logits over a vocabulary and their loss, at the end of kinds that predict tokens.
 *
 * The logits are by far the largest tensor of a batch (N Vp), so they are never complete in memory: the
 * head processes chunks of rows. The scale of the loss is known before the pass, so each chunk's gradients
 * are computed while its logits are in memory.
 *
 * If ranks divide the vocabulary, each computes the logits of its part. For each row of a chunk they exchange
 * DT_VOCAB_NUMBERS numbers (ops.h, cross_entropy_part), and dx is summed over the ranks once for all chunks.
 *
 * N rows, C V Vp as in engine/ops/ops.h
 * Ownership  everything is borrowed
 */

typedef struct dt_token_head {
    dt_model *model;
    int64_t vocab, vocab_padded;
    void *logits; /* memory for chunk_rows rows of Vp: in x's type, without backward F32 */
    int64_t chunk_rows;
    dt_tensor x;              /* (N,C) or (B,T,C): output of the final norm */
    dt_linear linear;         /* w (Vp,C), whole or of a rank: the sum of dx is the caller's */
    dt_tensor losses;         /* F32 (N): loss of each row */
    const dt_tensor *weights; /* F32, N in total: of each target; NULL: 1 */
    double smoothing;         /* label smoothing, for dt_token_head_train */
    double factor, cap;       /* of the logits, as in softcap_forward (ops.h); 0: none */
    void *capped;             /* with a cap: memory as large as `logits`, for dt_token_head_train */
    /* with model->peers: the weight's part of the vocabulary; vocab_padded is of it */
    dt_vocab_part part;
    /* F32 (DT_VOCAB_NUMBERS,N), (ranks,DT_VOCAB_NUMBERS,N): numbers that the ranks exchange */
    dt_tensor own, all;
    dt_tensor
        gathered; /* F32 (ranks,chunk_rows,Vp of a part), for dt_token_head_logits with peers */
} dt_token_head;

/* Rows of a chunk, for `rows` rows in total. Chunks have equal size, so that a backend that
 * prepares a product per shape sees only two shapes. *room: rows to allocate, whatever the batch. */
int64_t dt_token_head_chunk(int64_t *room, int64_t rows, size_t row_bytes, int64_t most_bytes);

/* Losses, the weight's gradient and dx (shaped like x, overwritten; in x's type or F32). targets: I32, N in total. With
 * peers dx is only this rank's term. */
dt_status dt_token_head_train(const dt_token_head *head, const dt_tensor *dx,
                              const dt_tensor *targets, const double *loss_scale, dt_error *err);
/* Compute the losses only. */
/* Compute the losses of a pass with backward, before dt_token_head_train: with logits in x's type. */
dt_status dt_token_head_losses(const dt_token_head *head, const dt_tensor *targets, dt_error *err);
dt_status dt_token_head_evaluate(const dt_token_head *head, const dt_tensor *targets,
                                 dt_error *err);
/* After dt_token_head_evaluate: the sum of the losses, and of the weights of the targets that count
 * (targets below 0 do not); weights NULL: 1 each. on_host: buffer for N of either. */
dt_status dt_token_head_sum(dt_device *device, const dt_tensor *losses, const dt_tensor *targets,
                            const dt_tensor *weights, int32_t *on_host, double *loss_sum,
                            double *counted, dt_error *err);
/* Logits of the last positions of each of `sequences` sequences, F32 (sequences, last, V) in host memory; with peers
 * on each rank. */
dt_status dt_token_head_logits(const dt_token_head *head, int64_t sequences, int64_t last,
                               float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
