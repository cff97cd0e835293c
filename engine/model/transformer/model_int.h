/* model_int: declares what the files of the transformer's pass share (Vaswani et al. 2017; fairseq).
 *
 *   sublayer, post:  x ─ branch ─ dropout ─(+ x)─► sum ─ norm ─► next x
 *             pre:   x ─ norm ─ branch ─ dropout ─(+ x)─► sum = next x
 *   encoder block:   self attention (whole source) ─ perceptron
 *   decoder block:   self attention (causal) ─ cross attention (encoder's output) ─ perceptron
 *   model:  scale wte[source] + position ─ dropout ─ encoder's blocks ─ (norm, if pre) ─► encoded
 *           scale wte[previous] + position ─ dropout ─ decoder's blocks ─ (norm) ─ head^T ─ loss
 *
 * Reading order  memory.c     views of weights and gradients; which activations a pass keeps, and where
 *                attention.c  cached keys and values; self and cross attention, forward and backward
 *                block.c      the perceptron; norm, branch, dropout and sum; the sublayers of a block in turn
 *                ends.c       embedding and final norm of either side; logits and loss
 *                kind.c       whole passes, and incremental translation of several sentences
 *
 * B sentences, with S tokens in the source and T in the target; C V Vp as in ops.h. Of a tensor rank, everything if
 * layers are whole: H heads, A = D H their width, F the perceptron's.
 * Hooks      units are the root, the encoder's blocks, the decoder's blocks, in model.h's order; the
 *            encoder's final norm and the embedding of the previous tokens run between the two
 * Encoded    every decoder block reads it; their gradients of it are summed in one buffer, the last
 *            block's first. Tensor ranks sum this buffer once, after the first block
 * Sums       linear layers sum over tensor ranks what a branch adds to the stream and the gradient of its input
 * Padding    a query at a padded position computes a finite value that is never used: its gradient is 0
 * Dropout    after both embeddings, after every branch, and on attention's probabilities. Masks use layer
 *            number l in the encoder and layers + l in the decoder
 * Recompute  what backward reads is kept or recomputed (config.recompute); the results are bit-identical
 *            in all three modes, as masks are drawn from keys. Per row, C and F in the compute type and
 *            fp32 statistics:
 *                         encoder block     decoder block     outside the blocks
 *              none       4 C + 4 A + F     6 C + 8 A + F
 *              selective  2 C + 4 A + F     3 C + 8 A + F     C    (pre)
 *                         3 C + 4 A + F     4 C + 8 A + F     C    (post)
 *              full       C                 C                 3 C + 8 A + F (pre), 4 C + 8 A + F (post)
 *            selective recomputes norms, full whole blocks, except the very last, which is still in
 *            memory. The activation of fc1's output is never kept
 */
#ifndef DT_ENGINE_MODEL_TRANSFORMER_INT_H
#define DT_ENGINE_MODEL_TRANSFORMER_INT_H

#include "engine/device/device.h"
#include "engine/model/linear.h"
#include "engine/ops/ops.h"
#include "recipes/architecture/architecture.h"
#include "recipes/architecture/tokens.h"

#define DT_TRANSFORMER_NORM_EPS 1e-5

typedef enum dt_transformer_branch {
    DT_TRANSFORMER_SELF,
    DT_TRANSFORMER_CROSS, /* only in the decoder */
    DT_TRANSFORMER_PERCEPTRON,
    DT_TRANSFORMER_BRANCHES
} dt_transformer_branch;

/* Tensors of a sublayer: act (B,rows,C), and statistics of each row. */
typedef struct dt_transformer_sublayer {
    dt_tensor sum;        /* sum of residual stream and branch */
    dt_tensor normed;     /* pre: input of the branch; post: output of the sublayer */
    dt_tensor mean, rstd; /* F32: statistics of the norm */
} dt_transformer_sublayer;

/* Activations that a block's forward pass keeps for backward. */
typedef struct dt_transformer_block {
    dt_transformer_sublayer sub[DT_TRANSFORMER_BRANCHES];
    dt_tensor qkv, att, lse;        /* self attention: (B,rows,3A), (B,rows,A), F32 (B,H,rows) */
    dt_tensor cross_q, cross_kv;    /* cross attention: queries (B,T,A), keys and values (B,S,2A) */
    dt_tensor cross_att, cross_lse; /* cross attention: output (B,T,A), log-sum-exp F32 (B,H,T) */
    dt_tensor fc;                   /* (B,rows,F): output of the perceptron's fc1 */
    dt_tensor
        active; /* (B,rows,F): the activation's output; no data unless all is kept for backward */
} dt_transformer_block;

/* Encoder or decoder in the current pass. */
typedef struct dt_transformer_side {
    bool decoder;
    int first_layer, layers; /* index of its first block in the model, and number of blocks */
    int64_t B, rows;         /* number of sentences, tokens of each */
    /* [layers + 1] act (B,rows,C): the input of each block, then the last output; without
     * backward all are the same memory */
    dt_tensor *stream;
    dt_transformer_block *blocks; /* [layers] activations of the blocks */
    /* pre-norm only: output and statistics of the final norm */
    dt_tensor norm, norm_mean, norm_rstd;
} dt_transformer_side;

/* Hypotheses under incremental decoding; those of one sentence are contiguous. The tensors are at
 * the arena's start and outlive passes. */
typedef struct dt_transformer_growth {
    bool decoding;     /* the pass adds a token to each hypothesis of the first sentences */
    int64_t *tokens;   /* [sentences]: tokens of each hypothesis so far */
    int64_t *source;   /* [sentences]: tokens of the source */
    int64_t sentence;  /* index of the sentence that the pass encodes */
    int64_t longest;   /* longest hypothesis in the pass, with the new token */
    int64_t farthest;  /* length of the longest source in the pass */
    dt_tensor kept;    /* act (layers * sentences * versions * context, 2A): keys and values */
    dt_tensor encoded; /* act (layers * sentences * context, 2A): keys and values of the sources */
    dt_tensor logits;  /* F32 (ranks,rows,Vp of a rank); no data unless ranks divide layers */
    dt_tensor places;  /* I32 (rows,1): position of each hypothesis's new token */
    dt_tensor lengths; /* I32 (rows): length of each hypothesis, places + 1 */
    dt_tensor sources; /* I32 (sentences): length of each source */
    int32_t *on_host;  /* [2 * rows + sentences]: host copies of places, lengths, sources */
} dt_transformer_growth;

/* model->state of this kind: the tensors of the current pass. */
typedef struct dt_transformer_state {
    dt_device_arena arena; /* memory of all activations, laid out again by every pass */
    int64_t logits_bytes;  /* limit of a chunk of logits (but at least one row) */
    bool wide_chunks;      /* a chunk can grow to the size of the blocks' scratch */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    dt_transformer_side encoder, decoder;
    dt_transformer_growth growth;
    /* act (context,C), at the arena's start in every pass; only if sinusoidal */
    dt_tensor positions;
    dt_tensor lengths; /* I32 (B): lengths of the sources */
    dt_tensor losses;  /* F32 (B*T): loss of each target */
    void *logits;      /* (logits_rows,Vp): logits of one chunk */
    int64_t logits_rows;
    /* The following three only if ranks divide layers; dt_token_head's own and all. terms: F32, C: this
     * rank's terms of a sum over the rows of either side; no data if the compute type is F32 */
    dt_tensor part_own, part_all;
    dt_tensor terms;
    /* Scratch of the blocks, for the rows of either side. wide: F, or attention's gradients if
     * larger; narrow: C. */
    void *wide, *narrow;
    /* offset in `wide` between the gradients of queries and of the encoder's keys and values */
    size_t wide_gap;
    /* The following are used only with backward: */
    void *dsum;    /* C: gradient of a sum, if post */
    void *dpart;   /* C: one block's gradient of the encoder's output */
    void *dread;   /* C: gradient of a branch's input */
    void *dstream; /* C: gradient of the stream, in the decoder, and if pre in the encoder */
    /* act (B,S,C): gradient of the encoder's output; if post, later of its stream */
    dt_tensor dencoded;
    dt_tensor dencoded_terms; /* as `terms`, of dencoded: the blocks' sum, before the ranks' */
} dt_transformer_state;

/* Arguments of the functions that process a block in a pass. */
typedef struct dt_transformer_call {
    dt_model *model;
    dt_transformer_side *side;
    dt_transformer_block *block;
    int layer;               /* index of the block within the side */
    const dt_batch *dropout; /* batch whose key masks are drawn from; NULL: no dropout */
    bool backward;           /* dw is set */
    dt_tensor w[DT_TRANSFORMER_BLOCK_PARAMS], dw[DT_TRANSFORMER_BLOCK_PARAMS];
} dt_transformer_call;

static inline bool dt_transformer_is_pre(const dt_model *model)
{
    return model->config.transformer.norm == DT_NORM_PRE;
}

/* Output of a side: that of its final norm, if pre. */
static inline const dt_tensor *dt_transformer_end_of(const dt_model *model,
                                                     const dt_transformer_side *side)
{
    return dt_transformer_is_pre(model) ? &side->norm : &side->stream[side->layers];
}

/* --- memory.c */
/* By the enums; data is NULL if the config omits the parameter */
dt_tensor dt_transformer_weight(const dt_model *model, int unit, int which);
dt_tensor dt_transformer_grad(const dt_model *model, int unit, int which);
/* A linear layer of the block, as dt_linear_of. */
dt_linear dt_transformer_linear(dt_transformer_call *c, int w_first, int w_last, int b_first,
                                int b_last, dt_linear_cut cut);
size_t dt_transformer_activation_bytes(const dt_model_kind *kind, const dt_model_config *config);
/* Point the state's tensors into the arena for a pass over (B,S) and (B,T). */
void dt_transformer_lay_out(dt_model *model, int64_t B, int64_t S, int64_t T, bool backward);
/* View scratch as act (B,rows,columns) of that side. */
dt_tensor dt_transformer_scratch(const dt_model *model, const dt_transformer_side *side, void *data,
                                 int64_t columns);

/* --- attention.c */
dt_status dt_transformer_open_growth(dt_model *model, dt_error *err);
void dt_transformer_close_growth(dt_transformer_growth *growth);
/* A layer's cached keys and values of a sentence's source, (1,S,2C). */
dt_tensor dt_transformer_kept_source(const dt_model *model, int64_t layer, int64_t sentence);
/* Copy a hypothesis to another, in all layers. */
dt_status dt_transformer_copy_version(dt_model *model, int64_t to, int64_t from, int64_t tokens,
                                      dt_error *err);
/* Function of dt_model_passes (kind.h). */
dt_status dt_transformer_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);

/* --- ends.c */
/* Embed the tokens of a side into its stream. */
dt_status dt_transformer_embed(dt_model *model, dt_transformer_side *side, const dt_tensor *tokens,
                               const dt_batch *dropout, dt_error *err);
/* For a pass that adds a token to each hypothesis: tokens I32 (rows,1), at positions growth.places. */
dt_status dt_transformer_embed_each(dt_model *model, const dt_tensor *tokens, dt_error *err);
dt_status dt_transformer_embed_backward(dt_model *model, dt_transformer_side *side,
                                        const dt_tensor *tokens, const dt_batch *dropout,
                                        dt_error *err);
dt_status dt_transformer_norm_end(dt_model *model, dt_transformer_side *side, dt_error *err);
/* Converts dy to the gradient of the stream. */
dt_status dt_transformer_norm_end_backward(dt_model *model, dt_transformer_side *side,
                                           const dt_tensor *dy, dt_error *err);

/* --- attention.c, block.c: x: the branch's input; y: scratch (B,rows,C), the branch's output
 * before dropout; NULL: compute only what backward reads. Backward: from dy, writes the gradient of
 * x to state->dread */
dt_status dt_transformer_attention_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                           dt_error *err);
dt_status dt_transformer_attention_backward(dt_transformer_call *c, const dt_tensor *dy,
                                            const dt_tensor *x, dt_error *err);
dt_status dt_transformer_cross_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                       dt_error *err);
/* Also computes state->dencoded, which the last block overwrites and the others add to. */
dt_status dt_transformer_cross_backward(dt_transformer_call *c, const dt_tensor *dy,
                                        const dt_tensor *x, dt_error *err);
/* The encoder's output, as the decoder's blocks read it. */
const dt_tensor *dt_transformer_encoded(const dt_model *model);

/* --- block.c */
/* y = dropout(x), forward or backward; y may be x. */
dt_status dt_transformer_drop(dt_model *model, dt_tensor *y, const dt_tensor *x,
                              const dt_batch *dropout, int layer, dt_philox_op op, bool backward,
                              dt_error *err);
bool dt_transformer_drops(const dt_model *model, const dt_batch *dropout);

/* --- block.c: dt_block_pass; layers are counted over both sides */
dt_status dt_transformer_block_forward(dt_model *model, int layer, const dt_batch *dropout,
                                       dt_error *err);
dt_status dt_transformer_block_backward(dt_model *model, int layer, const dt_batch *dropout,
                                        dt_error *err);
/* The gradient of a side's stream. */
dt_tensor dt_transformer_dstream(const dt_model *model, const dt_transformer_side *side);

/* --- ends.c; call after the decoder's final norm */
/* Losses, and the gradients of the head and the decoder's stream. */
dt_status dt_transformer_head_train(dt_model *model, const dt_tensor *targets,
                                    const double *loss_scale, dt_error *err);
dt_status dt_transformer_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* Logits of the last positions, copied to the host. */
dt_status dt_transformer_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

#endif
