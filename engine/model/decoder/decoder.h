/* decoder: what all kinds do that predict the next token of a text, and the parts that each fills in.
 *
 *   ids ─ embed ─ dropout ─ block 0 .. L-1 ─ norm ─ head^T ─ loss
 *
 * A kind is a dt_decoder_parts (a folder beside this one: its drawing in model_int.h, its block) and its
 * rows of recipes/architecture/decoder.h. Whole passes, the order of the hooks, memory but for a block's
 * own, the head, and what dropout lies on are here, once.
 *
 * Reading order  kind.c      dt_decoder_passes
 *                passes.c    whole passes
 *                memory.c    which activations a pass keeps and where
 *                residual.c  what blocks add to the residual stream
 *                params.c    views of weights and gradients
 *                head.c      logits and loss (engine/model/token_head.h)
 *                growth.c    sequences that grow
 *                kept.c      what is kept of them
 *
 * B T C V Vp as in ops.h; L blocks; act: config.dtype.
 * Dropout    after the embedding, and where a block asks for it; masks are drawn again in backward,
 *            none is kept
 * Recompute  what backward reads of a block is in two groups. "norms" cost little to compute again:
 *            under selective there is one set of them, in memory that gradients use, and the block's
 *            backward makes each just before it reads it. "products", of matrices and attention,
 *            cost much: under full there is one set of them too, and block_products fills it again. Nothing
 *            has written over the last block's, which is spared that
 * Memory     one function lays a pass out, whatever its size, with an arena or to count
 *            (engine/device/layout.h). The head's logits and the blocks' scratch lie in one place: they
 *            are there between the blocks' forward and backward passes, when nothing is in it. A
 *            chunk of logits has DT_LOGITS_BYTES at most; on cards, whose products of few rows read and
 *            add to the whole head for little, as much as that scratch has, in rows by the 128
 */
#ifndef DT_ENGINE_MODEL_DECODER_H
#define DT_ENGINE_MODEL_DECODER_H

#include "engine/device/layout.h"
#include "engine/model/kind.h"
#include "engine/ops/ops.h"
#include "recipes/architecture/tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DECODER_LASTING      4 /* tensors of a kind that outlive passes */
#define DT_DECODER_BLOCK_BYTES  4096
#define DT_DECODER_BLOCK_PARAMS 32

/* Sequences that grow: what the pass continues. */
typedef struct dt_decoder_growth {
    int64_t *tokens;   /* [sequences]: so far, before the pass */
    int64_t sequence;  /* that the pass continues ... */
    bool each;         /* ... or one token of each of the first B */
    int64_t longest;   /* of those, that token with it */
    dt_tensor places;  /* I32 (B,1): where each of them stands; device memory, as the next */
    dt_tensor lengths; /* I32 (B): places + 1 */
    int32_t *on_host;  /* [2 * sequences]: the same two */
} dt_decoder_growth;

/* model->state of these kinds: the pass that is laid out. */
typedef struct dt_decoder {
    dt_device_arena arena; /* laid out anew by each pass */
    int64_t logits_bytes;  /* a chunk of logits is at most this (one row at least) */
    bool wide_chunks;      /* or what the blocks' scratch has */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    int64_t B, T;
    dt_tensor
        lasting[DT_DECODER_LASTING]; /* the kind's, at the arena's start and thus at one place in
                                            * every pass: tables, what a growing sequence keeps */
    dt_decoder_growth growth;
    dt_tensor starts, positions; /* the batch's, where it has them (DT_DECODER_STARTS) */
    int64_t first_position;      /* of the pass: 0, or behind what is kept where it continues one */
    dt_tensor *stream; /* [layers + 1] act (B,T,C), the residual stream: what block l reads, and
                             * behind them what the final norm does; without backward all the same memory */
    void *blocks;      /* [layers] of the kind's own; without backward all the same memory */
    dt_tensor norm;    /* act (B,T,C): the final one's output */
    dt_tensor norm_mean, norm_rstd; /* F32 (B*T); no mean where its norm has none */
    dt_tensor losses;               /* F32 (B*T) */
    void *logits;                   /* (logits_rows,Vp): those of a chunk */
    int64_t logits_rows;
    dt_tensor
        narrow;     /* scratch of the blocks, act (B,T,C): a projection's output, or its gradient */
    dt_tensor wide; /* the same: the kind's, as wide as it takes it */
    /* Backward only. */
    dt_tensor
        dstream; /* act (B,T,C): gradient of the stream, one for all blocks; where the head had
                        * norm */
    dt_tensor
        dnarrow; /* act (B,T,C), with room for gradient_columns: gradient of what a product read */
} dt_decoder;

/* A pass of some size that is being laid out. */
typedef struct dt_decoder_layout {
    const dt_model_config *config;
    dt_layout memory;
    int64_t B, T;
} dt_decoder_layout;

/* The functions of a block take it as a void *: its own struct of block_bytes, which the layout copies for
 * each of the blocks. `dropout` has the key, NULL: none, whatever p is. */
typedef struct dt_decoder_parts {
    int block_params;   /* DT_DECODER_BLOCK_PARAMS at most */
    size_t block_bytes; /* DT_DECODER_BLOCK_BYTES at most */
    int embedding_param,
        head_param; /* of the root; the head is the embedding where config.own_lm_head
                                      * is false */
    int kept_first,
        kept_end; /* of lasting: what sequences keep as they grow (dt_decoder_take_kept) */
    /* MUST: whether the config leaves a parameter out (unit 0: of the root) */
    bool (*lacks)(const dt_model_config *config, int unit, int which);

    /* --- memory; each takes what it names */

    /* MUST: first what outlives passes (lasting), then the final norm's statistics */
    void (*take_own)(dt_decoder_layout *plan, dt_decoder *state);
    /* MUST: state->wide, and what blocks share beside it */
    void (*take_scratch)(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward);
    /* MUST: a block's norms, kept */
    void (*take_norms)(dt_decoder_layout *plan, void *block, bool backward);
    /* MUST: the norms of all blocks where backward computes them again: outputs into state->dnarrow, whose
     * contents are not needed then */
    void (*share_norms)(dt_decoder_layout *plan, const dt_decoder *state, void *block);
    /* MUST: a block's products but for its output. `stream`: where the sum in the middle of the block
     * goes; NULL: to a place of its own */
    void (*take_products)(dt_decoder_layout *plan, void *block, const dt_tensor *stream);
    /* MAY: columns that dnarrow has room for, where those may be more than C */
    int64_t (*gradient_columns)(const dt_model_config *config);
    /* MUST: of a pass that continues one sequence or each, once it is laid out: where what is kept of
     * the tokens goes, and where attention finds it */
    void (*lay_out_behind)(dt_model *model);
    /* MAY: fills the tables among `lasting`, whose places are known */
    dt_status (*fill_tables)(dt_model *model, dt_error *err);

    /* --- arithmetic; all MUST, x and y act (B,T,C) */

    dt_status (*embed_forward)(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                               dt_error *err);
    dt_status (*embed_backward)(dt_model *model, const dt_tensor *dy, const dt_tensor *tokens,
                                dt_error *err);
    /* w, dw: the block's weights and gradients, by the kind's enum */
    dt_status (*block_forward)(dt_model *model, int layer, dt_tensor *y, const dt_tensor *x,
                               const dt_tensor *w, const dt_batch *dropout, dt_error *err);
    /* Every product whose result backward reads, and what leads to them: what block_forward begins
     * with, and what is computed again */
    dt_status (*block_products)(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                const dt_batch *dropout, dt_error *err);
    /* state->dstream: gradient of y becomes gradient of x. */
    dt_status (*block_backward)(dt_model *model, int layer, const dt_tensor *x, const dt_tensor *w,
                                dt_tensor *dw, const dt_batch *dropout, dt_error *err);
    /* The final norm, into state->norm. */
    dt_status (*norm_forward)(dt_model *model, const dt_tensor *x, dt_error *err);
    /* state->dstream += what state->dnarrow is of x. */
    dt_status (*norm_backward)(dt_model *model, const dt_tensor *x, dt_error *err);
} dt_decoder_parts;

extern const dt_model_passes dt_decoder_passes;

/* --- memory.c */

/* Memory for a tensor of that shape. */
void dt_decoder_take(dt_decoder_layout *plan, dt_tensor *tensor);
dt_tensor dt_decoder_take_act(dt_decoder_layout *plan, int64_t width); /* (B,T,width) */
dt_tensor dt_decoder_take_stat(dt_decoder_layout *plan, int64_t each); /* F32 (B*T*each) */
dt_tensor dt_decoder_take_lse(dt_decoder_layout *plan, int64_t heads); /* F32 (B,heads,T) */
/* act (layers * sequences, kept, columns), where config.incremental: what each block keeps of each. */
void dt_decoder_take_kept(dt_decoder_layout *plan, dt_decoder *state, int which, int64_t columns);
/* The larger of a pass with backward (but for inference) and one without. */
size_t dt_decoder_count_bytes(const dt_decoder_parts *parts, const dt_model_config *config);
/* Points the state's tensors into the arena for a pass over (B,T). */
void dt_decoder_lay_out(dt_model *model, int64_t B, int64_t T, bool backward);

/* --- params.c */

/* Views as dt_model_weight's, by the kind's enums. No data where the config leaves the parameter out. */
dt_tensor dt_decoder_weight(const dt_model *model, int unit, int which);
dt_tensor dt_decoder_grad(const dt_model *model, int unit, int which);
/* `first` and those joined to it (dt_param_shape), as one matrix with the rows of all. */
dt_tensor dt_decoder_joined(const dt_tensor *params, int first, int last);
/* Of the root: the one that is the head. */
int dt_decoder_head_param(const dt_model *model);

/* --- residual.c */

/* Whether a pass with this key drops what config.dropout says: false where p is 0. */
bool dt_decoder_drops(const dt_model *model, const dt_batch *dropout);
/* y = onto + dropout(x w^T + b); b of no data: none. y may be onto. state->narrow is scratch. */
dt_status dt_decoder_project(dt_model *model, dt_tensor *y, const dt_tensor *onto,
                             const dt_tensor *x, const dt_tensor *w, const dt_tensor *b,
                             const dt_batch *dropout, int layer, dt_philox_op op, dt_error *err);
/* The gradient that reaches what is added, in *dy: the stream's, through the dropout. */
dt_status dt_decoder_project_grad(dt_model *model, dt_tensor *dy, const dt_batch *dropout,
                                  int layer, dt_philox_op op, dt_error *err);
/* Of causal attention, within documents where the batch tells them apart, and over what is kept where it
 * continues each of some sequences; *key: room for the one that args points to. */
dt_attention_args dt_decoder_attention_args(const dt_model *model, const dt_batch *dropout,
                                            int layer, dt_philox_key *key);

/* --- growth.c; as kind.h has them */

dt_status dt_decoder_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens,
                            float *logits, dt_error *err);
dt_status dt_decoder_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                                 dt_error *err);

/* --- kept.c */

/* Sequences that it can keep, and the room of each in one of the kept. */
int64_t dt_decoder_sequences(const dt_model *model);
int64_t dt_decoder_kept_room(const dt_model_config *config);
/* Of kept `which`, what block `layer` has of `sequence`: (1,rows,columns) from token `first` on. */
dt_tensor dt_decoder_kept(const dt_model *model, int which, int64_t layer, int64_t sequence,
                          int64_t first, int64_t rows);
/* Where the pass continues each: columns first .. of made (B,1,all) go behind what is kept of theirs. */
dt_status dt_decoder_keep(dt_model *model, int which, int64_t layer, const dt_tensor *made,
                          int64_t first, dt_error *err);
/* Then: `heads` heads from column `first` on of all that is kept of each. */
dt_heads dt_decoder_kept_heads(const dt_model *model, int which, int64_t layer, int64_t first,
                               int64_t heads, int64_t width);
/* As kind.h has them. */
dt_status dt_decoder_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);
int64_t dt_decoder_extended(const dt_model *model, int64_t sequence);

/* --- passes.c */

/* As kind.h has them. */
dt_status dt_decoder_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                          dt_error *err);
dt_status dt_decoder_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);
dt_status dt_decoder_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                              int64_t *counted, dt_error *err);
dt_status dt_decoder_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                            dt_error *err);
/* Without backward, of a batch of tokens alone; infer: up to the final norm, and unit 0 is in use when
 * it returns. */
void dt_decoder_begin(dt_model *model, const dt_batch *batch);
dt_status dt_decoder_infer(dt_model *model, const dt_batch *batch, dt_error *err);

/* --- head.c; after the final norm */

/* Losses, and the gradients of head and norm; state->dstream is written. x: what the norm read. */
dt_status dt_decoder_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                                const double *loss_scale, dt_error *err);
/* Losses only. */
dt_status dt_decoder_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* Logits of the last positions, to the host. */
dt_status dt_decoder_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
