/* model_int: what the files of the Llama pass share (Touvron et al. 2023, https://arxiv.org/abs/2302.13971;
 * Qwen2 and Qwen3 by their switches).
 *
 *   block:  x ─ norm_1 ─ q k v ─ (norm of q, k) ─ rotate q, k ─ attention ─ o_proj ─(+ x)─► mid
 *         mid ─ norm_2 ─ gate, up ─ silu(gate) up ─ down ─(+ mid)─► out
 *   model:  embedding[token] ─ block 0 .. L-1 ─ norm ─ head^T ─ loss
 *   head is the embedding, or lm_head where it is untied; all norms are rmsnorm
 *
 * Reading order  rotary.c     the table of angles
 *                memory.c     what activations a pass keeps, and what it computes again
 *                attention.c  the first half of a block, both ways
 *                block.c      the other half, and both together
 *                kind.c       both ends, and what engine/model/decoder/ is given
 *
 * B T C V Vp as in ops.h; L blocks; H heads of queries, G of keys and values, D wide each; F the width
 * of gate and up. Per token: A = H D, Q = (H + 2 G) D, R = (H + G) D where q and k are normed, else 0.
 * Rotation   of q and k where they lie, side by side with v, since its backward needs the angles
 *            alone; where they are normed before, the norm's backward needs what it began with, and
 *            they go to a place of their own
 * Dropout    beside the decoder's, on the attention's probabilities, and after both projections onto
 *            the residual stream, as GPT-2 has it
 * Recompute  what backward reads, kept or computed again (config.recompute); the same bits in all
 *            ways. Per token, in the compute type, and fp32 statistics (s = H + G where q and k are
 *            normed, else 0), L blocks:
 *                         of every block                        beside the blocks
 *              none       4 C + Q + A + 2 F + R   2 + H + s     2 C + max(C,A)              2
 *              selective  2 C + Q + A + 2 F       H             2 C + max(C,A)              4 + s
 *              full       C                                     3 C + max(C,A) + Q + A + 2 F + R
 *                                                                                      4 + H + s
 *            and in one place the blocks' scratch of C + max(F,Q), with R more under selective, and
 *            the head's chunk of logits (64 MiB at most; on cards as much as that scratch
 *            has); and the table of angles, 4 D bytes a place.
 *            silu(gate) up is never kept: an element costs some 10 FLOPs to make again, from gate and
 *            up, which its backward needs anyway; so it is with the norms' outputs under selective.
 *            full computes the products again too, but for the block's last; the last block, still
 *            there, is spared
 * Types      as GPT-2's: everything that a pass keeps is in config.dtype, statistics and the angles
 *            in F32
 */
#ifndef DT_ENGINE_MODEL_LLAMA_INT_H
#define DT_ENGINE_MODEL_LLAMA_INT_H

#include "engine/model/decoder/decoder.h"

/* What one block's forward pass leaves for its backward pass. Where it is computed again, blocks share
 * memory, with one another and with the scratch of the backward pass. */
typedef struct dt_llama_block {
    dt_tensor norm_1, norm_1_rstd; /* (B,T,C), F32 (B*T) */
    dt_tensor qkv; /* (B,T,Q): queries, keys and values; of one growing sequence (1,T,A), queries */
    dt_tensor turned;         /* (B,T,R): queries and keys, normed and rotated; no data: in place */
    dt_tensor q_rstd, k_rstd; /* F32 (B*T*H), (B*T*G); no data where nothing is normed */
    dt_tensor keys,
        values;    /* (1,tokens,G D) of one growing sequence from its start; else no data */
    dt_tensor att; /* (B,T,A): heads side by side */
    dt_tensor lse; /* F32 (B,H,T) */
    dt_tensor mid; /* (B,T,C): x + o_proj's */
    dt_tensor norm_2, norm_2_rstd;
    dt_tensor gate_up; /* (B,T,2F); its gradient in backward */
    dt_tensor
        act; /* (B,T,F): silu(gate) up; in the decoder's `wide`, (B,T,max(F,Q)), where then the
                        * gradient of q k v goes */
} dt_llama_block;

/* Places among what outlives passes. */
enum {
    DT_LLAMA_ANGLES,      /* F32 (context,D) */
    DT_LLAMA_KEPT_KEYS,   /* (layers * sequences,kept,G D): of growing sequences */
    DT_LLAMA_KEPT_VALUES, /* likewise */
    DT_LLAMA_ROW_ANGLES   /* F32 (sequences,D): of a pass that continues each of some */
};

static inline dt_llama_block *dt_llama_block_of(const dt_model *model, int layer)
{
    const dt_decoder *state = model->state;

    return (dt_llama_block *)state->blocks + layer;
}

/* --- rotary.c */
/* One row of the table: D/2 cosines, then D/2 sines. */
void dt_llama_angles_row(float *out, int64_t position, const dt_llama_config *config);
/* Fills their table. */
dt_status dt_llama_angles_fill(dt_model *model, dt_error *err);
/* The rows for the pass that is laid out; of one that continues each of some sequences a row of each, which
 * dt_llama_angles_gather has fetched. */
dt_tensor dt_llama_angles(const dt_decoder *state);
dt_status dt_llama_angles_gather(dt_model *model, dt_error *err);

/* --- memory.c: as dt_decoder_parts has them */
void dt_llama_take_own(dt_decoder_layout *plan, dt_decoder *state);
void dt_llama_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward);
void dt_llama_take_norms(dt_decoder_layout *plan, void *block, bool backward);
void dt_llama_share_norms(dt_decoder_layout *plan, const dt_decoder *state, void *block);
void dt_llama_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream);
void dt_llama_lay_out_behind(dt_model *model);

/* --- attention.c; w, dw: the block's, in the order of dt_llama_block_param */
/* Into mid. */
dt_status dt_llama_attention_forward(dt_model *model, int layer, const dt_tensor *x,
                                     const dt_tensor *w, const dt_batch *dropout, dt_error *err);
/* state->dstream: gradient of mid becomes gradient of x. */
dt_status dt_llama_attention_backward(dt_model *model, int layer, const dt_tensor *x,
                                      const dt_tensor *w, dt_tensor *dw, const dt_batch *dropout,
                                      dt_error *err);

/* --- block.c: as dt_decoder_parts has them */
dt_status dt_llama_block_forward(dt_model *model, int layer, dt_tensor *y, const dt_tensor *x,
                                 const dt_tensor *w, const dt_batch *dropout, dt_error *err);
dt_status dt_llama_block_products(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_tensor *w, const dt_batch *dropout, dt_error *err);
dt_status dt_llama_block_backward(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_tensor *w, dt_tensor *dw, const dt_batch *dropout,
                                  dt_error *err);

#endif
