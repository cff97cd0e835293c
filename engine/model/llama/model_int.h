/* model_int: what the files of the Llama pass share (Touvron et al. 2023, https://arxiv.org/abs/2302.13971;
 * Qwen2 and Qwen3 by their switches).
 *
 *   block:  x ─ norm_1 ─ q k v ─ (norm of q, k) ─ rotate q, k ─ attention ─ o_proj ─(+ x)─► mid
 *         mid ─ norm_2 ─ gate, up ─ silu(gate) up ─ down ─(+ mid)─► out
 *   model:  embedding[token] ─ block 0 .. L-1 ─ norm ─ head^T ─ loss
 *   head is the embedding, or lm_head where it is untied; all norms are rmsnorm
 *
 * Reading order  params.c     views of a unit's weights and gradients
 *                rotary.c     the table of angles
 *                memory.c     what activations a pass keeps, and what it computes again
 *                attention.c  the first half of a block, both ways
 *                block.c      the other half, and both together
 *                head.c       final norm, logits and loss (engine/model/token_head.h)
 *                kind.c       whole passes, and when the hooks are called
 *
 * B T C V Vp as in ops.h; L blocks; H heads of queries, G of keys and values, D wide each; F the width
 * of gate and up. Per token: A = H D, Q = (H + 2 G) D, R = (H + G) D where q and k are normed, else 0.
 * Rotation   of q and k where they lie, side by side with v, since its backward needs the angles
 *            alone; where they are normed before, the norm's backward needs what it began with, and
 *            they go to a place of their own
 * Dropout    after the embedding, on the attention's probabilities, and after both projections onto
 *            the residual stream, as GPT-2 has it; masks are drawn again in backward
 * Recompute  what backward reads, kept or computed again (config.recompute); the same bits in all
 *            ways. Per token, in the compute type, and fp32 statistics (s = H + G where q and k are
 *            normed, else 0), L blocks:
 *                         of every block                        beside the blocks
 *              none       4 C + Q + A + 2 F + R   2 + H + s     2 C + max(C,A)              2
 *              selective  2 C + Q + A + 2 F       H             2 C + max(C,A)              4 + s
 *              full       C                                     3 C + max(C,A) + Q + A + 2 F + R
 *                                                                                      4 + H + s
 *            and in one place the blocks' scratch of C + max(F,Q), with R more under selective, and
 *            the head's chunk of logits (64 MiB at most); and the table of angles, 4 D bytes a place.
 *            silu(gate) up is never kept: an element costs some 10 FLOPs to make again, from gate and
 *            up, which its backward needs anyway; so it is with the norms' outputs under selective.
 *            full computes the products again too, but for the block's last; the last block, still
 *            there, is spared
 * Types      as GPT-2's: everything that a pass keeps is in config.dtype, statistics and the angles
 *            in F32
 */
#ifndef DT_ENGINE_MODEL_LLAMA_INT_H
#define DT_ENGINE_MODEL_LLAMA_INT_H

#include "engine/model/kind.h"
#include "engine/ops/ops.h"

/* What one block's forward pass leaves for its backward pass. Where it is computed again, blocks share
 * memory, with one another and with the scratch of the backward pass. */
typedef struct dt_llama_block {
    dt_tensor norm_1, norm_1_rstd; /* (B,T,C), F32 (B*T) */
    dt_tensor qkv; /* (B,T,Q): queries, keys and values; of a growing sequence (1,T,A), queries */
    dt_tensor turned;         /* (B,T,R): queries and keys, normed and rotated; no data: in place */
    dt_tensor q_rstd, k_rstd; /* F32 (B*T*H), (B*T*G); no data where nothing is normed */
    dt_tensor keys, values; /* (1,tokens,G D) of a growing sequence from its start; else no data */
    dt_tensor att;          /* (B,T,A): heads side by side */
    dt_tensor lse;          /* F32 (B,H,T) */
    dt_tensor mid;          /* (B,T,C): x + o_proj's */
    dt_tensor norm_2, norm_2_rstd;
    dt_tensor gate_up; /* (B,T,2F); its gradient in backward */
    dt_tensor act;     /* (B,T,F): silu(gate) up; the same memory for all blocks */
    dt_tensor out;     /* (B,T,C): the next block's input */
} dt_llama_block;

typedef struct dt_llama_state {
    dt_device_arena arena; /* laid out anew by each pass */
    int64_t logits_bytes;  /* a chunk of logits is at most this (one row at least) */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    /* The pass that is laid out. B, T as in ops.h. */
    int64_t B, T;
    dt_tensor angles; /* F32 (context,D); at the arena's start, so that it outlives passes */
    dt_tensor kept_keys, kept_values; /* (layers,context,G D) likewise: of a growing sequence */
    int64_t kept_tokens;
    int64_t first_position; /* of the pass: 0, or kept_tokens where it continues */
    dt_tensor embedded;     /* (B,T,C): input of block 0 */
    dt_llama_block *blocks; /* [layers]; without backward all the same memory */
    dt_tensor norm;         /* (B,T,C): the final one */
    dt_tensor norm_rstd, losses;
    void *logits; /* (logits_rows,Vp): those of a chunk */
    int64_t logits_rows;
    dt_tensor
        narrow;     /* in the blocks, where the head has its logits: (B,T,C) a projection's output,
                       * or its gradient */
    dt_tensor wide; /* the same: (B,T,max(F,Q)) act, then the gradient of q k v */
    /* Backward only. */
    dt_tensor dstream; /* (B,T,C): gradient of the residual stream; where the head had norm */
    dt_tensor dnarrow; /* (B,T,C), with room for (B,T,A): gradient of what a product read */
} dt_llama_state;

/* --- params.c */
/* Views as dt_model_weight's. `which` is a dt_llama_root_param for unit 0, else a
 * dt_llama_block_param. No data where the config leaves the parameter out. */
dt_tensor dt_llama_weight(const dt_model *model, int unit, int which);
dt_tensor dt_llama_grad(const dt_model *model, int unit, int which);
/* A block's, all of them. */
void dt_llama_weights(dt_tensor *out, const dt_model *model, int layer);
void dt_llama_grads(dt_tensor *out, const dt_model *model, int layer);
/* `first` and those joined to it, as one: q k v with their A + 2 G D rows, gate and up with 2 F. */
dt_tensor dt_llama_joined(const dt_tensor *params, int first, int last);
/* DT_LLAMA_HEAD, or DT_LLAMA_EMBED where they are tied. */
int dt_llama_head_param(const dt_model *model);

/* --- rotary.c */
/* One row of the table: D/2 cosines, then D/2 sines. */
void dt_llama_angles_row(float *out, int64_t position, const dt_llama_config *config);
/* Fills state->angles. */
dt_status dt_llama_angles_fill(dt_model *model, dt_error *err);
/* The rows for the pass that is laid out. */
dt_tensor dt_llama_angles(const dt_llama_state *state);

/* --- memory.c */
/* The larger of a pass with backward (but for inference) and one without. */
size_t dt_llama_activation_bytes(const dt_model_config *config);
/* Points the state's tensors into the arena for a pass over (B,T). */
void dt_llama_lay_out(dt_model *model, int64_t B, int64_t T, bool backward);
/* After it, for a pass that continues the sequence: each block's keys and values go behind the kept
 * ones. */
void dt_llama_lay_out_behind(dt_model *model);

/* --- attention.c; `x` is the block's input, `dropout` has the key, NULL: none whatever p is */
/* Into mid. */
dt_status dt_llama_attention_forward(dt_model *model, int layer, const dt_tensor *x,
                                     const dt_tensor *w, const dt_batch *dropout, dt_error *err);
/* state->dstream: gradient of mid becomes gradient of x. */
dt_status dt_llama_attention_backward(dt_model *model, int layer, const dt_tensor *x,
                                      const dt_tensor *w, dt_tensor *dw, const dt_batch *dropout,
                                      dt_error *err);
/* What is added to the residual stream: y = dropout(x w^T). */
dt_status dt_llama_project(dt_model *model, dt_tensor *y, const dt_tensor *x, const dt_tensor *w,
                           const dt_batch *dropout, int layer, dt_philox_op op, dt_error *err);
/* The gradient that reaches y: the stream's, through the dropout. */
dt_status dt_llama_project_grad(dt_model *model, dt_tensor *dy, const dt_batch *dropout, int layer,
                                dt_philox_op op, dt_error *err);

/* --- block.c */
dt_status dt_llama_block_forward(dt_model *model, int layer, const dt_tensor *x,
                                 const dt_batch *dropout, dt_error *err);
/* Fills again what backward needs and the forward pass of a later block has written over; nothing
 * to do but for DT_RECOMPUTE_FULL. */
dt_status dt_llama_block_recompute(dt_model *model, int layer, const dt_tensor *x,
                                   const dt_batch *dropout, dt_error *err);
/* state->dstream: gradient of the output becomes gradient of the input. */
dt_status dt_llama_block_backward(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_batch *dropout, dt_error *err);

/* --- head.c; `x` is the last block's output */
/* Final norm into state->norm. */
dt_status dt_llama_head_norm(dt_model *model, const dt_tensor *x, dt_error *err);
/* After the norm: losses, and the gradients of head and norm; state->dstream is written. */
dt_status dt_llama_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                              double loss_scale, dt_error *err);
/* After the norm: losses only. */
dt_status dt_llama_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* After the norm: logits of the last positions, to the host. */
dt_status dt_llama_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

/* Whether a pass with this key drops what config.dropout says: false where p is 0. */
static inline bool dt_llama_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.llama.dropout > 0;
}

#endif
