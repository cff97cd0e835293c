/* model_int: what the files of the transformer's pass share (Vaswani et al. 2017; fairseq's transformer).
 *
 *   sublayer, post:  x ─ branch ─ dropout ─(+ x)─► sum ─ norm ─► next x
 *             pre:   x ─ norm ─ branch ─ dropout ─(+ x)─► sum = next x
 *   encoder block:   self attention (all of the source) ─ perceptron
 *   decoder block:   self attention (causal) ─ cross attention (encoder's output) ─ perceptron
 *   model:  scale wte[source] + position ─ dropout ─ encoder's blocks ─ (norm, where pre) ─► encoded
 *           scale wte[previous] + position ─ dropout ─ decoder's blocks ─ (norm) ─ head^T ─ loss
 *
 * Reading order  params.c     views of weights and gradients
 *                memory.c     what activations a pass keeps, and where
 *                attention.c, perceptron.c   the branches, both ways
 *                sublayer.c   norm, branch, dropout and sum, both ways
 *                block.c      a block's sublayers in turn
 *                head.c       logits and loss (engine/model/token_head.h)
 *                ends.c       embedding and last norm of either side
 *                kept.c       what growing translations keep
 *                translate.c  translations side by side, token by token
 *                kind.c       whole passes
 *
 * B sentences, S and T tokens of each on either side, C H V Vp as in ops.h; F the perceptron's width.
 * Hooks      units are the root, the encoder's blocks, the decoder's: model.h's order, with the encoder's
 *            final norm and the embedding of the previous tokens between the blocks
 * Encoded    every decoder block reads it; their gradients of it are summed in one buffer, last block's
 *            first
 * Padding    a query of padding computes something finite that nobody reads: its gradient is 0
 * Dropout    after both embeddings, after every branch, and on attention's probabilities. A block's masks
 *            are of layer l in the encoder and layers + l in the decoder
 * Recompute  what backward reads, kept or computed again (config.recompute); the same bits all three
 *            ways, as masks are drawn from keys. Of a row, C and F in the compute type and fp32
 *            statistics:
 *                         encoder's block   decoder's block   beside all blocks
 *              none       8 C + F           14 C + F
 *              selective  6 C + F (pre)     11 C + F (pre)    C
 *                         7 C + F (post)    12 C + F (post)
 *              full       C                 C                 11 C + F (pre), 12 C + F (post)
 *            selective computes norms again, full a whole block; the last of all, still there, is
 *            spared that. What the activation makes of fc1's output is never kept
 */
#ifndef DT_ENGINE_MODEL_TRANSFORMER_INT_H
#define DT_ENGINE_MODEL_TRANSFORMER_INT_H

#include "engine/device/layout.h"
#include "engine/model/kind.h"
#include "engine/ops/ops.h"
#include "recipes/architecture/tokens.h"
#include "recipes/architecture/translations.h"

#define DT_TRANSFORMER_NORM_EPS 1e-5

typedef enum dt_transformer_branch {
    DT_TRANSFORMER_SELF,
    DT_TRANSFORMER_CROSS, /* decoder alone */
    DT_TRANSFORMER_PERCEPTRON,
    DT_TRANSFORMER_BRANCHES
} dt_transformer_branch;

/* act (B,rows,C), and statistics of each row. */
typedef struct dt_transformer_sublayer {
    dt_tensor sum;        /* what stood in the stream, and the branch */
    dt_tensor normed;     /* pre: what the branch reads; post: what follows */
    dt_tensor mean, rstd; /* F32 */
} dt_transformer_sublayer;

/* What one block's forward pass leaves for its backward pass. */
typedef struct dt_transformer_block {
    dt_transformer_sublayer sub[DT_TRANSFORMER_BRANCHES];
    dt_tensor qkv, att, lse;        /* (B,rows,3C), (B,rows,C), F32 (B,H,rows) */
    dt_tensor cross_q, cross_kv;    /* (B,T,C), (B,S,2C) */
    dt_tensor cross_att, cross_lse; /* (B,T,C), F32 (B,H,T) */
    dt_tensor fc;                   /* (B,rows,F) */
} dt_transformer_block;

/* Encoder or decoder in a pass that is laid out. */
typedef struct dt_transformer_side {
    bool decoder;
    int first_layer, layers; /* of the model's blocks */
    int64_t B, rows;         /* sentences, tokens of each */
    dt_tensor *stream; /* [layers + 1] act (B,rows,C): what block l reads, and behind them what
                              * is left; without backward all the same memory */
    dt_transformer_block *blocks;         /* [layers] */
    dt_tensor norm, norm_mean, norm_rstd; /* of the end, where pre: its output and statistics */
} dt_transformer_side;

/* Translations that grow side by side: sentences, a sentence's versions one behind another. Tensors lie at
 * the arena's start and outlive passes. */
typedef struct dt_transformer_growth {
    bool decoding;     /* the pass adds a token to each version of the first sentences */
    int64_t *tokens;   /* [sentences]: of each version so far */
    int64_t *source;   /* [sentences]: of what is translated */
    int64_t sentence;  /* that the pass encodes */
    int64_t longest;   /* of those that the pass adds to: the new token with it ... */
    int64_t farthest;  /* ... and of the sources */
    dt_tensor kept;    /* act (layers * sentences * versions * context, 2C): keys and values */
    dt_tensor encoded; /* act (layers * sentences * context, 2C): of the sources */
    dt_tensor places;  /* I32 (rows,1): where the new token of each version stands */
    dt_tensor lengths; /* I32 (rows): places + 1 */
    dt_tensor sources; /* I32 (sentences): of each source */
    int32_t *on_host;  /* [2 * rows + sentences]: the same three */
} dt_transformer_growth;

/* model->state. */
typedef struct dt_transformer_state {
    dt_device_arena arena; /* laid out anew by each pass */
    int64_t logits_bytes;  /* a chunk of logits is at most this (one row at least) */
    bool wide_chunks;      /* or what the blocks' scratch has */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    dt_transformer_side encoder, decoder;
    dt_transformer_growth growth;
    dt_tensor positions; /* act (context,C), at the arena's start in every pass; where sinusoidal */
    dt_tensor lengths;   /* I32 (B): of the source's rows */
    dt_tensor losses;    /* F32 (B*T) */
    void *logits;        /* (logits_rows,Vp): those of a chunk */
    int64_t logits_rows;
    /* Scratch of the blocks, for a row of either side: F and what attention's gradients take; C each. */
    void *wide, *narrow;
    size_t
        wide_gap; /* in wide, from the gradient of queries to that of the encoder's keys and values */
    /* Backward only. */
    void *dsum;         /* C: gradient of a sum, where post */
    void *dpart;        /* C: one block's gradient of what the encoder made */
    void *dread;        /* C: of what a branch read */
    void *dstream;      /* C: of the stream, in the decoder, and where pre in the encoder */
    dt_tensor dencoded; /* act (B,S,C); where post the encoder's stream's from there on */
} dt_transformer_state;

/* A block in a pass. */
typedef struct dt_transformer_call {
    dt_model *model;
    dt_transformer_side *side;
    dt_transformer_block *block;
    int layer;               /* of the side */
    const dt_batch *dropout; /* NULL: none */
    dt_tensor w[DT_TRANSFORMER_BLOCK_PARAMS], dw[DT_TRANSFORMER_BLOCK_PARAMS];
} dt_transformer_call;

static inline bool dt_transformer_is_pre(const dt_model *model)
{
    return model->config.transformer.norm == DT_NORM_PRE;
}

/* What a side makes: its last norm's output, where pre. */
static inline const dt_tensor *dt_transformer_end_of(const dt_model *model,
                                                     const dt_transformer_side *side)
{
    return dt_transformer_is_pre(model) ? &side->norm : &side->stream[side->layers];
}

/* --- params.c: by the enums; no data where the config leaves the parameter out */
dt_tensor dt_transformer_weight(const dt_model *model, int unit, int which);
dt_tensor dt_transformer_grad(const dt_model *model, int unit, int which);

/* --- memory.c */
size_t dt_transformer_activation_bytes(const dt_model_kind *kind, const dt_model_config *config);
/* Points the state's tensors into the arena for a pass over (B,S) and (B,T). */
void dt_transformer_lay_out(dt_model *model, int64_t B, int64_t S, int64_t T, bool backward);
/* Scratch as act (B,rows,columns) of that side. */
dt_tensor dt_transformer_scratch(const dt_model *model, const dt_transformer_side *side, void *data,
                                 int64_t columns);

/* --- kept.c */
dt_status dt_transformer_open_growth(dt_model *model, dt_error *err);
void dt_transformer_close_growth(dt_transformer_growth *growth);
/* A layer's part of what is kept of a sentence's source, (1,S,2C). */
dt_tensor dt_transformer_kept_source(const dt_model *model, int64_t layer, int64_t sentence);
/* What a version has becomes another's, in all layers. */
dt_status dt_transformer_copy_version(dt_model *model, int64_t to, int64_t from, int64_t tokens,
                                      dt_error *err);
/* As dt_model_passes has it. */
dt_status dt_transformer_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);
/* Of a pass that adds a token to each version: */
/* The new rows' keys and values go behind those that are kept; *views: all of them. */
dt_status dt_transformer_grow(dt_transformer_call *c, dt_qkv *views, dt_error *err);
/* The sources' and the queries of their versions: *views and *out have a row a version of each. */
void dt_transformer_view_sources(const dt_transformer_call *c, dt_qkv *views, dt_tensor *out);
/* --- translate.c: dt_model_passes' */
dt_status dt_transformer_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
                                   dt_error *err);
dt_status dt_transformer_translate_next(dt_model *model, const dt_tensor *previous,
                                        const int32_t *parents, float *logits, dt_error *err);

/* --- passes' parts, in ends.c */
/* Tokens of a side to its stream. */
dt_status dt_transformer_embed(dt_model *model, dt_transformer_side *side, const dt_tensor *tokens,
                               const dt_batch *dropout, dt_error *err);
/* Of a pass that adds a token to each version: tokens I32 (rows,1), at growth.places. */
dt_status dt_transformer_embed_each(dt_model *model, const dt_tensor *tokens, dt_error *err);
dt_status dt_transformer_embed_backward(dt_model *model, dt_transformer_side *side,
                                        const dt_tensor *tokens, const dt_batch *dropout,
                                        dt_error *err);
dt_status dt_transformer_norm_end(dt_model *model, dt_transformer_side *side, dt_error *err);
/* dy becomes the gradient of the stream. */
dt_status dt_transformer_norm_end_backward(dt_model *model, dt_transformer_side *side,
                                           const dt_tensor *dy, dt_error *err);

/* --- attention.c, perceptron.c: y: scratch (B,rows,C), the branch without its dropout; x: what it
 * reads. Of the gradient dy that of x goes to state->dread. y NULL: what backward reads alone */
dt_status dt_transformer_attention_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                           dt_error *err);
dt_status dt_transformer_attention_backward(dt_transformer_call *c, const dt_tensor *dy,
                                            const dt_tensor *x, dt_error *err);
dt_status dt_transformer_cross_forward(dt_transformer_call *c, dt_tensor *y, const dt_tensor *x,
                                       dt_error *err);
/* And state->dencoded, which the last block writes and the others add to. */
dt_status dt_transformer_cross_backward(dt_transformer_call *c, const dt_tensor *dy,
                                        const dt_tensor *x, dt_error *err);
dt_status dt_transformer_perceptron_forward(dt_transformer_call *c, dt_tensor *y,
                                            const dt_tensor *x, dt_error *err);
dt_status dt_transformer_perceptron_backward(dt_transformer_call *c, const dt_tensor *dy,
                                             const dt_tensor *x, dt_error *err);
/* What the decoder's blocks read of the encoder. */
const dt_tensor *dt_transformer_encoded(const dt_model *model);

/* --- sublayer.c */
/* again: for backward, into what the blocks share */
dt_status dt_transformer_sublayer_forward(dt_transformer_call *c, dt_transformer_branch which,
                                          bool again, dt_error *err);
/* *d: gradient of what follows becomes that of what stood in the stream. */
dt_status dt_transformer_sublayer_backward(dt_transformer_call *c, dt_transformer_branch which,
                                           dt_tensor *d, dt_error *err);
/* y = dropout(x), both ways; may be the same. */
dt_status dt_transformer_drop(dt_model *model, dt_tensor *y, const dt_tensor *x,
                              const dt_batch *dropout, int layer, dt_philox_op op, bool backward,
                              dt_error *err);
bool dt_transformer_drops(const dt_model *model, const dt_batch *dropout);

/* --- block.c: dt_block_pass, of layers counted over both sides */
dt_status dt_transformer_block_forward(dt_model *model, int layer, const dt_batch *dropout,
                                       dt_error *err);
dt_status dt_transformer_block_backward(dt_model *model, int layer, const dt_batch *dropout,
                                        dt_error *err);
/* The gradient of a side's stream. */
dt_tensor dt_transformer_dstream(const dt_model *model, const dt_transformer_side *side);

/* --- head.c; after the decoder's end */
/* Losses, and the gradients of head and of the decoder's stream. */
dt_status dt_transformer_head_train(dt_model *model, const dt_tensor *targets,
                                    const double *loss_scale, dt_error *err);
dt_status dt_transformer_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* Of the last positions, to the host. */
dt_status dt_transformer_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

#endif
