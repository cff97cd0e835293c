/* token_head: the end of a pass of kinds that predict tokens: logits over a vocabulary, and their loss.
 *
 * The logits of a batch are its largest tensor by far (N Vp), so they never stand whole: the head runs
 * over chunks of rows. The scale of the loss is known before the pass, so a chunk's gradients are done
 * while its logits are there.
 *
 * N rows, C V Vp as in engine/ops/ops.h
 * Ownership  everything is borrowed
 */
#ifndef DT_ENGINE_MODEL_TOKEN_HEAD_H
#define DT_ENGINE_MODEL_TOKEN_HEAD_H

#include "engine/device/device.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_token_head {
    dt_device *device;
    int64_t vocab, vocab_padded;
    void *logits;       /* room for chunk_rows rows of Vp: in x's type, without backward F32 */
    int64_t chunk_rows; /* of a chunk */
    dt_tensor x;        /* (N,C) or (B,T,C): the normed output of the last block */
    dt_tensor weight;   /* (Vp,C) */
    dt_tensor losses;   /* F32 (N) */
    double smoothing;   /* of the targets, in dt_token_head_train */
} dt_token_head;

/* Rows of a chunk, of `rows` in all: chunks of equal size, so that a backend that prepares a product
 * per shape meets two shapes. *room: rows to take memory for, whatever the batch. */
int64_t dt_token_head_chunk(int64_t *room, int64_t rows, size_t row_bytes, int64_t most_bytes);

/* Losses, dweight += and dx (as x, overwritten). targets I32, N in all. */
dt_status dt_token_head_train(const dt_token_head *head, const dt_tensor *dx, dt_tensor *dweight,
                              const dt_tensor *targets, const double *loss_scale, dt_error *err);
/* Losses only. */
dt_status dt_token_head_evaluate(const dt_token_head *head, const dt_tensor *targets,
                                 dt_error *err);
/* After dt_token_head_evaluate: the losses' sum, and how many targets were counted (those below 0 are
 * not). on_host: room for the targets. */
dt_status dt_token_head_sum(dt_device *device, const dt_tensor *losses, const dt_tensor *targets,
                            int32_t *on_host, double *loss_sum, int64_t *counted, dt_error *err);
/* Logits of the last positions of each of `sequences`, F32 (sequences, last, V) in host memory. */
dt_status dt_token_head_logits(const dt_token_head *head, int64_t sequences, int64_t last,
                               float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
