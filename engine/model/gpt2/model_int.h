/* model_int: what the files of the GPT-2 pass share (Radford et al. 2019).
 *
 *   block:  x ─ ln_1 ─ c_attn ─ attention ─ c_proj ─ dropout ─(+ x)─► mid
 *         mid ─ ln_2 ─ c_fc ─ gelu ─ c_proj ─ dropout ─(+ mid)─► out
 *   model:  scale wte[token] + wpe[t] ─ dropout ─ block 0 .. L-1 ─ ln_f ─ head^T ─ loss
 *   head is wte, or lm_head where it is untied; wpe is learned, or a table (engine/model/sinusoids.h)
 *
 * Reading order  memory.c     what activations a pass keeps, and what it computes again
 *                block.c      one block, both ways
 *                kind.c       both ends, and what engine/model/decoder/ is given
 *
 * B T C V Vp H as in ops.h; L blocks; F the width inside the multi-layer perceptron, 4 C unless the config says
 * another. Figures below are for F = 4 C.
 * GELU       by config.activation: GPT-2's tanh approximation, or GELU itself, as fairseq's
 *            transformer_lm_gpt2_small has it (5e-4 apart at most)
 * Dropout    beside the decoder's, on the attention's probabilities, and after both projections onto
 *            the residual stream
 * Recompute  what backward reads, kept or computed again (config.recompute); the same bits all
 *            three ways, as masks are drawn from keys. Per token, C in the compute type (2 or 4
 *            bytes) and fp32 statistics, L blocks:
 *                         of every block       beside the blocks        124M, bf16, 4 x 1024
 *              none       12 C   4 + H stats    3 C   3 stats             995 MB
 *              selective  10 C   H              3 C   7                   843 MB
 *              full          C                 12 C   7 + H               218 MB
 *            and in one place the blocks' scratch of 5 C and the head's chunk of logits (64 MiB at
 *            most; on cards as much as that scratch has), and the table of sinusoidal positions.
 *            An element of a norm's output costs some 8 FLOPs to compute again, one of GELU's some
 *            20, both from what is kept anyway, 6 C together for less than 1 % of a block's FLOPs.
 *            GELU's 4 C are never kept; the norms' 2 C go under selective. An element that a
 *            product made costs 2 C FLOPs or more (1536 at C = 768), so q k v, attention's output,
 *            the residual stream and c_fc's output stay there. full computes those again as well,
 *            with 8 of the 12 C^2 of a block's forward pass: 22 % more FLOPs a step. The block's
 *            last product is not needed again, and the last block, still there, is spared.
 *            A product with GELU in it (ops.h) gives the forward pass GELU of sums that are not
 *            rounded yet, and backward has GELU of the rounded ones: in half precision one rounding
 *            apart, in the gradient of one weight, whatever is kept
 * Types      everything that a pass keeps is in config.dtype, the residual stream too, as fairseq's
 *            fp16 and bf16 and FSDP's mixed precision have it; PyTorch's autocast keeps the stream
 *            in fp32. Measured against fp64 on 12 blocks of 256 (rounding simulated): an fp32
 *            stream takes the gradient's error in bf16 from 1.5 % to 1.2 %, in fp16 from 0.46 % to
 *            0.44 %: products and norms round as much. Its two tensors a block would be twice as
 *            wide: 2 C more on 12 C (on 10 C under selective, C on C under full), and as much more
 *            traffic in ops that memory bounds. Not worth it; sums and statistics are fp32 anyway
 */
#ifndef DT_ENGINE_MODEL_GPT2_INT_H
#define DT_ENGINE_MODEL_GPT2_INT_H

#include "engine/model/decoder/decoder.h"

/* What one block's forward pass leaves for its backward pass; statistics are F32, all else in the
 * compute type. Where it is computed again, blocks share memory, with one another and with the scratch
 * of the backward pass. */
typedef struct dt_gpt2_block {
    dt_tensor ln_1;                 /* (B,T,C) */
    dt_tensor ln_1_mean, ln_1_rstd; /* (B*T) */
    dt_tensor qkv;                  /* (B,T,3C): q, k, v, of each H heads of C/H */
    dt_tensor att;                  /* (B,T,C): heads side by side */
    dt_tensor lse;                  /* (B,H,T) */
    dt_tensor attended; /* qkv of the keys: qkv, or one growing sequence's from its start */
    dt_tensor mid;      /* (B,T,C): x + c_proj's */
    dt_tensor ln_2;     /* (B,T,C) */
    dt_tensor ln_2_mean, ln_2_rstd; /* (B*T) */
    dt_tensor fc;                   /* (B,T,F) */
    dt_tensor
        gelu; /* (B,T,F): in the decoder's `wide`, where then its gradient goes and that of q k v */
} dt_gpt2_block;

/* Places among what outlives passes. */
enum {
    DT_GPT2_POSITIONS, /* (context,C) where they are sinusoidal */
    DT_GPT2_KEPT       /* (layers * sequences,kept,3C): q k v of growing sequences */
};

static inline dt_gpt2_block *dt_gpt2_block_of(const dt_model *model, int layer)
{
    const dt_decoder *state = model->state;

    return (dt_gpt2_block *)state->blocks + layer;
}

/* --- memory.c: as dt_decoder_parts has them */
void dt_gpt2_take_own(dt_decoder_layout *plan, dt_decoder *state);
void dt_gpt2_take_scratch(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward);
void dt_gpt2_take_norms(dt_decoder_layout *plan, void *block, bool backward);
void dt_gpt2_share_norms(dt_decoder_layout *plan, const dt_decoder *state, void *block);
void dt_gpt2_take_products(dt_decoder_layout *plan, void *block, const dt_tensor *stream);
void dt_gpt2_lay_out_behind(dt_model *model);

/* --- block.c: as dt_decoder_parts has them */
dt_status dt_gpt2_block_forward(dt_model *model, int layer, dt_tensor *y, const dt_tensor *x,
                                const dt_tensor *w, const dt_batch *dropout, dt_error *err);
dt_status dt_gpt2_block_products(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                 const dt_batch *dropout, dt_error *err);
dt_status dt_gpt2_block_backward(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                 dt_tensor *dw, const dt_batch *dropout, dt_error *err);

#endif
