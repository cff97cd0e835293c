/* model_int: declares what the files of the GPT-2 pass share (Radford et al. 2019).
 *
 *   block:  x ─ ln_1 ─ c_attn ─ attention ─ c_proj ─ dropout ─(+ x)─► mid
 *         mid ─ ln_2 ─ c_fc ─ gelu ─ c_proj ─ dropout ─(+ mid)─► out
 *   model:  scale wte[token] + wpe[t] ─ dropout ─ block 0 .. L-1 ─ ln_f ─ head^T ─ loss
 *   head is wte, or lm_head if untied; wpe is learned, or a table (engine/model/vocabulary.h)
 *
 * Reading order  block.c  one block, forward and backward
 *                kind.c   which activations a pass keeps, and which it recomputes; embedding and final norm;
 *                         the parts for engine/model/decoder/
 *
 * B T C V Vp H as in ops.h; L blocks; F the width of the multi-layer perceptron, 4 C by default; A the width of
 * attention's output, C. Figures below are for F = 4 C. If N ranks divide the layers, H, F and A are a rank's: H/N ...
 * GELU       by config.activation: GPT-2's tanh approximation, or the exact GELU, as in fairseq's
 *            transformer_lm_gpt2_small (they differ by at most 5e-4)
 * Dropout    besides the decoder's: on the attention's probabilities, and after both projections onto
 *            the residual stream
 * Recompute  what backward reads is kept or recomputed (config.recompute); the results are bit-identical
 *            in all three modes, as masks are drawn from keys. Per token, C in the compute type (2 or 4
 *            bytes) and fp32 statistics, L blocks:
 *                         in every block       outside the blocks       124M, bf16, 4 x 1024
 *              none       12 C   4 + H stats    3 C   3 stats             995 MB
 *              selective  10 C   H              3 C   7                   843 MB
 *              full          C                 12 C   7 + H               218 MB
 *            In addition: the blocks' scratch of 5 C and, in the same memory, the head's chunk of logits
 *            (at most 64 MiB; on GPUs as much as that scratch), and the table of sinusoidal positions.
 *            Recomputing an element costs about 8 FLOPs for a norm's output and about 20 for GELU's, both
 *            from tensors that are kept anyway: 6 C together for less than 1 % of a block's FLOPs.
 *            GELU's 4 C are never kept; the norms' 2 C are recomputed under selective. An element of a
 *            product costs 2 C FLOPs or more (1536 at C = 768), so selective keeps q k v, attention's
 *            output, the residual stream and c_fc's output. full recomputes those as well,
 *            with 8 of the 12 C^2 of a block's forward pass: 22 % more FLOPs per step. The block's
 *            last product is not needed again, and the last block is still in memory and not recomputed.
 *            A product fused with GELU (ops.h) applies GELU in the forward pass to sums before rounding,
 *            but backward applies it to rounded sums: in half precision one rounding of difference,
 *            in the gradient of one weight, in every mode
 * Types      all kept activations are in config.dtype, including the residual stream, as in fairseq's
 *            fp16 and bf16 and FSDP's mixed precision; PyTorch's autocast keeps the stream in fp32.
 *            Measured against fp64 on 12 blocks of 256 (rounding simulated), an fp32 stream reduces
 *            the gradient's error in bf16 from 1.5 % to 1.2 %, in fp16 from 0.46 % to 0.44 %: products
 *            and norms round as much. Its two tensors per block would be twice as wide (2 C in addition to
 *            12 C; to 10 C under selective, C in addition to C under full), with as much more traffic in
 *            memory-bound ops. Not worth it; sums and statistics are fp32 anyway
 */
#ifndef DT_ENGINE_MODEL_GPT2_INT_H
#define DT_ENGINE_MODEL_GPT2_INT_H

#include "engine/model/decoder/decoder.h"

/* Activations that a block's forward pass keeps for backward; statistics are F32, the rest in the
 * compute type. Under recompute, blocks share this memory with each other and with the scratch of
 * backward. */
typedef struct dt_gpt2_block {
    dt_tensor ln_1;                 /* (B,T,C): output of ln_1 */
    dt_tensor ln_1_mean, ln_1_rstd; /* (B*T): statistics of ln_1 */
    dt_tensor qkv;                  /* (B,T,3A): q, k, v, each as H heads of A/H */
    dt_tensor att;                  /* (B,T,A): attention's output, heads concatenated */
    dt_tensor lse;                  /* (B,H,T): log-sum-exp of attention's scores */
    dt_tensor attended;             /* q k v of all keys: qkv, or the cache of one sequence */
    dt_tensor mid;                  /* (B,T,C): x + the projection of att */
    dt_tensor ln_2;                 /* (B,T,C): output of ln_2 */
    dt_tensor ln_2_mean, ln_2_rstd; /* (B*T): statistics of ln_2 */
    dt_tensor fc;                   /* (B,T,F): output of c_fc */
    /* (B,T,F): of its own if all is kept, else in the decoder's `wide`, which later holds the
     * gradient of q k v; its gradient overwrites it */
    dt_tensor gelu;
} dt_gpt2_block;

/* Indices of GPT-2's tensors in dt_decoder.lasting. */
enum {
    DT_GPT2_POSITIONS, /* (context,C): table of sinusoidal positions */
    DT_GPT2_KEPT       /* (layers * sequences,kept,3A): cached q k v */
};

static inline dt_gpt2_block *dt_gpt2_block_of(const dt_model *model, int layer)
{
    const dt_decoder *state = model->state;

    return (dt_gpt2_block *)state->blocks + layer;
}

/* --- block.c: functions of dt_decoder_parts */
dt_status dt_gpt2_block_forward(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                                dt_error *err);
dt_status dt_gpt2_block_products(const dt_block_call *c, const dt_tensor *x, dt_error *err);
dt_status dt_gpt2_block_backward(const dt_block_call *c, const dt_tensor *x, dt_error *err);

#endif
