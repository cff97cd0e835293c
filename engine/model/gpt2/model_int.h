/* model_int: what the files of the GPT-2 pass share (Radford et al. 2019).
 *
 *   block:  x ─ ln_1 ─ c_attn ─ attention ─ c_proj ─ dropout ─(+ x)─► mid
 *         mid ─ ln_2 ─ c_fc ─ gelu ─ c_proj ─ dropout ─(+ mid)─► out
 *   model:  scale wte[token] + wpe[t] ─ dropout ─ block 0 .. L-1 ─ ln_f ─ head^T ─ loss
 *   head is wte, or lm_head where it is untied; wpe is learned, or the table of gpt2_positions.c
 *
 * Reading order  params.c     views of a unit's weights and gradients
 *                positions.c  sinusoidal positions
 *                memory.c     what activations a pass keeps, and what it computes again
 *                block.c      one block, both ways
 *                head.c       final norm, logits in chunks, loss
 *                kind.c       whole passes, and when the hooks are called
 *
 * B T C V Vp H as in ops.h; L blocks.
 * GELU       by config.activation: GPT-2's tanh approximation, or GELU itself, as fairseq's
 *            transformer_lm_gpt2_small has it (5e-4 apart at most)
 * Dropout    after the embedding, on the attention's probabilities, and after both projections
 *            onto the residual stream; masks are drawn again in backward, none is kept
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

#include "engine/model/kind.h"
#include "engine/ops/ops.h"

#define DT_GPT2_NORM_EPS 1e-5

/* What one block's forward pass leaves for its backward pass; statistics are F32, all else in the
 * compute type. Where it is computed again, blocks share memory, with one another and with the scratch
 * of the backward pass. */
typedef struct dt_gpt2_block {
    dt_tensor ln_1;                 /* (B,T,C) */
    dt_tensor ln_1_mean, ln_1_rstd; /* (B*T) */
    dt_tensor qkv;                  /* (B,T,3C): q, k, v, of each H heads of C/H */
    dt_tensor att;                  /* (B,T,C): heads side by side */
    dt_tensor lse;                  /* (B,H,T) */
    dt_tensor attended; /* qkv of the keys: qkv, or a growing sequence's from its start */
    dt_tensor mid;      /* (B,T,C): x + c_proj's */
    dt_tensor ln_2;     /* (B,T,C) */
    dt_tensor ln_2_mean, ln_2_rstd; /* (B*T) */
    dt_tensor fc;                   /* (B,T,4C) */
    dt_tensor gelu; /* (B,T,4C): the same memory for all blocks, always computed again */
    dt_tensor out;  /* (B,T,C): the next block's input */
} dt_gpt2_block;

typedef struct dt_gpt2_state {
    dt_device_arena arena; /* laid out anew by each pass */
    int64_t logits_bytes;  /* a chunk of logits is at most this (one row at least) */
    bool wide_chunks;      /* or what the blocks' scratch has; in rows by the 128: for cards, whose
                            * products of few rows read and add to the whole head for little */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    /* The pass that is laid out. B, T as in ops.h. */
    int64_t B, T;
    dt_tensor positions; /* (context,C) where they are sinusoidal; at the arena's start, so that
                          * it outlives passes */
    dt_tensor kept;      /* (layers,context,3C) likewise: q k v of a growing sequence */
    int64_t kept_tokens;
    int64_t first_position;         /* of the pass: 0, or kept_tokens where it continues */
    dt_tensor embedded;             /* (B,T,C): input of block 0 */
    dt_gpt2_block *blocks;          /* [layers]; without backward all the same memory */
    dt_tensor ln_f;                 /* (B,T,C) */
    dt_tensor ln_f_mean, ln_f_rstd; /* F32 (B*T) */
    dt_tensor losses;               /* F32 (B*T) */
    void *logits;                   /* (logits_rows,Vp): those of a chunk */
    int64_t logits_rows;
    dt_tensor narrow, wide; /* in the blocks, where the head has its logits: (B,T,C) a projection's
                             * output, or its gradient; (B,T,4C) GELU's, then that of q k v */
    /* Backward only. */
    dt_tensor dstream; /* (B,T,C): gradient of the residual stream, one for all blocks; where the
                        * head had ln_f */
    dt_tensor dnarrow; /* (B,T,C) */
} dt_gpt2_state;

/* --- params.c */
/* Views as dt_model_weight's. `which` is a dt_gpt2_root_param for unit 0, else a
 * dt_gpt2_block_param. No data where the config leaves the parameter out. */
dt_tensor dt_gpt2_weight(const dt_model *model, int unit, int which);
dt_tensor dt_gpt2_grad(const dt_model *model, int unit, int which);
/* DT_GPT2_HEAD, or DT_GPT2_WTE where they are tied. */
int dt_gpt2_head_param(const dt_model *model);

/* --- positions.c */
/* One row of the table: sin(pos f_0) .. sin(pos f_{h-1}), cos(pos f_0) .. cos(pos f_{h-1}), and a
 * zero where `embed` is odd; h = embed / 2 (2 or more), f_i = 10000^(-i/(h-1)). */
void dt_gpt2_position_row(float *out, int64_t position, int64_t embed);
/* Fills state->positions. */
dt_status dt_gpt2_positions_fill(dt_model *model, dt_error *err);

/* --- memory.c */
/* The larger of a pass with backward (but for inference) and one without. */
size_t dt_gpt2_activation_bytes(const dt_model_config *config);
/* Points the state's tensors into the arena for a pass over (B,T). */
void dt_gpt2_lay_out(dt_model *model, int64_t B, int64_t T, bool backward);
/* After it, for a pass that continues the sequence: each block's q k v go behind the kept ones. */
void dt_gpt2_lay_out_behind(dt_model *model);

/* --- block.c; `x` is the block's input, `dropout` has the key, NULL: none whatever p is */
dt_status dt_gpt2_block_forward(dt_model *model, int layer, const dt_tensor *x,
                                const dt_batch *dropout, dt_error *err);
/* Fills again what backward needs and the forward pass of a later block has written over; nothing
 * to do but for DT_RECOMPUTE_FULL. */
dt_status dt_gpt2_block_recompute(dt_model *model, int layer, const dt_tensor *x,
                                  const dt_batch *dropout, dt_error *err);
/* state->dstream: gradient of the output becomes gradient of the input. */
dt_status dt_gpt2_block_backward(dt_model *model, int layer, const dt_tensor *x,
                                 const dt_batch *dropout, dt_error *err);

/* --- head.c; `x` is the last block's output */
/* Final norm into state->ln_f. */
dt_status dt_gpt2_head_norm(dt_model *model, const dt_tensor *x, dt_error *err);
/* After the norm: losses, and the gradients of head and norm; state->dstream is written. */
dt_status dt_gpt2_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                             double loss_scale, dt_error *err);
/* After the norm: losses only. */
dt_status dt_gpt2_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* After the norm: logits of the last positions, to the host. */
dt_status dt_gpt2_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

/* Whether a pass with this key drops what config.dropout says: false where p is 0. */
static inline bool dt_gpt2_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.gpt2.dropout > 0;
}

#endif
