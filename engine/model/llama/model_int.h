/* model_int: declares what the files of the Llama pass share (Touvron et al. 2023,
 * https://arxiv.org/abs/2302.13971), and of the models that its switches make of it
 * (recipes/fields/switch_table.h; those in brackets).
 *
 *   block:  x ─ [norm_1] ─ q k v ─ [norm of q, k] ─ rotate q, k ─ attention ─ o_proj ─ [after_1] ─(+ x)─► mid
 *         mid ─ [norm_2] ─ gate, up ─ f(gate) up ─ down ─ [after_2] ─(+ mid)─► out
 *   model:  [factor] embedding[token] ─ block 0 .. L-1 ─ norm ─ head^T ─ [factor, cap] ─ loss
 *   head is the embedding, or lm_head if untied; all norms are rmsnorm
 *
 * Reading order  rope.c   the tables of angles
 *                block.c  attention, the perceptron and whole blocks, forward and backward
 *                kind.c   which activations a pass keeps, and which it recomputes; embedding and final norm;
 *                         the parts for engine/model/decoder/
 *
 * B T C V Vp as in ops.h; L blocks; H heads of queries, G of keys and values, D wide each; F the width
 * of gate and up. If N ranks divide the layers, H, G and F are a rank's: H/N, max(1, G/N), F/N.
 * Per token: A = H D, Q = (H + 2 G) D, R = (H + G) D if q and k are normed, else 0. N = 2 if norms come before
 * attention and perceptron, else 0; M = 2 if norms come after them, else 0.
 * Rotation   q and k are rotated in place, next to v, since its backward needs only the angles. If they
 *            are normed first, the norm's backward needs its input, so the result is a separate tensor
 * Dropout    besides the decoder's: on the attention's probabilities, and after both projections onto
 *            the residual stream, as in GPT-2
 * Recompute  what backward reads is kept or recomputed (config.recompute); the results are bit-identical
 *            in all modes. Per token, in the compute type, and fp32 statistics (s = H + G if q and k are
 *            normed by heads, 2 and one outside the blocks if all heads together, else 0), L blocks:
 *                         in every block                                outside the blocks
 *              none       (2 + N + M) C + Q + A + 2 F + R  N + M + H + s   2 C + max(C,A)            2
 *              selective  (2 + M) C + Q + A + 2 F          H + M           2 C + max(C,A)            2 + N + s
 *              full       C                                                (3 + M) C + max(C,A) + Q + A + 2 F + R
 *                                                                                          2 + N + M + H + s
 *            In addition: the blocks' scratch of C + max(F,Q), plus R under selective, and in the same
 *            memory the head's chunk of logits (at most 64 MiB; on GPUs as much as that scratch);
 *            and the tables of angles, 4 bytes per position and rotated element.
 *            f(gate) up is never kept: recomputing an element costs about 10 FLOPs, from gate and
 *            up, which its backward needs anyway; the same holds for the norms' outputs under selective.
 *            full recomputes the products too, except the block's last unless a norm reads it; the last block is
 *            still in memory and not recomputed
 * Types      as in GPT-2: all kept activations are in config.dtype, statistics and the angles
 *            in F32
 */
#ifndef DT_ENGINE_MODEL_LLAMA_INT_H
#define DT_ENGINE_MODEL_LLAMA_INT_H

#include "engine/model/decoder/decoder.h"

/* Activations that a block's forward pass keeps for backward. Under recompute, blocks share this
 * memory with each other and with the scratch of backward. */
typedef struct dt_llama_block {
    dt_tensor norm_1, norm_1_rstd; /* (B,T,C): output of norm_1; F32 (B*T): its statistics */
    /* (B,T,Q): queries, keys, values; (1,T,A), queries only, if one sequence is extended */
    dt_tensor qkv;
    dt_tensor turned; /* (B,T,R): queries and keys, normed and rotated; no data: in qkv */
    /* F32 (B*T*H), (B*T*G): statistics of their norms; (B*T) each: sums of squares of all heads; no data if not
     * normed */
    dt_tensor q_rstd, k_rstd;
    dt_tensor keys,
        values;    /* (1,tokens,G D): cache of the one sequence being extended; else no data */
    dt_tensor att; /* (B,T,A): attention's output, heads concatenated */
    dt_tensor lse; /* F32 (B,H,T): log-sum-exp of attention's scores */
    dt_tensor mid; /* (B,T,C): x + the projection of att */
    /* (B,T,C): outputs of attention and perceptron, which the norms after them read; no data without backward: then
     * they are in the decoder's `narrow`. F32 (B*T): statistics of these norms */
    dt_tensor out_1, out_2, after_1_rstd, after_2_rstd;
    dt_tensor norm_2, norm_2_rstd;
    dt_tensor norm_1_mean, norm_2_mean; /* F32 (B*T): only of layer norms; no data: rmsnorm */
    dt_tensor gate_up;                  /* (B,T,2F); backward overwrites it with its gradient */
    /* (B,T,F): f(gate) up; of its own if all is kept, else in the decoder's `wide`, (B,T,max(F,Q)),
     * which later holds the gradient of q k v; its gradient overwrites it */
    dt_tensor act;
} dt_llama_block;

/* Indices of Llama's tensors in dt_decoder.lasting. */
enum {
    DT_LLAMA_ANGLES,      /* F32 (tables*context,R): tables of the angles of R rotated elements */
    DT_LLAMA_KEPT_KEYS,   /* (layers * sequences,kept,G D): cached keys */
    DT_LLAMA_KEPT_VALUES, /* cached values, with the same shape */
    DT_LLAMA_ROW_ANGLES, /* F32 (tables*sequences,R): for a pass that extends each of several sequences */
    DT_LLAMA_PRODUCTS /* F32 (B*T): sums for the backward pass of a norm of all heads */
};

static inline dt_llama_block *dt_llama_block_of(const dt_model *model, int layer)
{
    const dt_decoder *state = model->state;

    return (dt_llama_block *)state->blocks + layer;
}

/* --- rope.c */

/* Fill the tables of rotary angles, for sequences of config.tokens. */
dt_status dt_llama_angles_fill(dt_model *model, dt_error *err);
/* Prepare the tables for the current pass: some scalings depend on its longest sequence, and a pass that extends each of
 * several sequences needs the rows of their positions. */
dt_status dt_llama_angles_ready(dt_model *model, dt_error *err);
/* Rows of block `layer`'s table for the current pass. */
dt_tensor dt_llama_angles_rows(const dt_model *model, int64_t layer);

/* --- block.c */

/* The norm of the model, with weights w[0] and, if `mean` has data, biases w[1]. */
dt_status dt_llama_norm_forward(dt_model *model, dt_tensor *y, dt_tensor *mean, dt_tensor *rstd,
                                const dt_tensor *x, const dt_tensor *w, dt_error *err);
dt_status dt_llama_norm_backward(dt_model *model, dt_tensor *dx, dt_tensor *dw, const dt_tensor *dy,
                                 const dt_tensor *x, const dt_tensor *mean, const dt_tensor *rstd,
                                 const dt_tensor *w, dt_error *err);

/* Functions of dt_decoder_parts. */
dt_status dt_llama_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                 dt_error *err);
dt_status dt_llama_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err);
dt_status dt_llama_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err);

#endif
