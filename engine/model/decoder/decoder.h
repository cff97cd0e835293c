/* decoder: runs the passes that all decoder-only kinds share, and declares the parts that a kind adds.
 *
 *   ids ─ embed ─ dropout ─ block 0 .. L-1 ─ norm ─ head^T ─ loss
 *
 * A kind supplies a dt_decoder_parts (in its own folder: model_int.h draws the pass, block.c has the block)
 * and its rows in recipes/architecture/decoder.h. This folder has what kinds share: whole passes, the order
 * of the hooks, the memory outside a block, the head, and where dropout applies.
 *
 * Reading order  passes.c    whole passes, and the head (engine/model/vocabulary.h)
 *                memory.c    which activations a pass keeps and where, and the KV cache
 *                residual.c  views of weights and gradients; what blocks add to the residual stream
 *                preference.c  the loss of pairs of answers
 *                kind.c      incremental decoding of several sequences, and dt_decoder_passes
 *
 * B T C V Vp as in ops.h; L blocks; act: config.dtype.
 * Dropout    after the embedding, and where a block applies it; no mask is kept, backward draws the masks
 *            again
 * Recompute  what backward reads of a block is in two groups. "norms" are cheap to recompute: under
 *            selective all blocks share one set of them, in memory that gradients use, and the block's
 *            backward recomputes each just before reading it. "products" (matrix products and attention)
 *            are expensive: under full all blocks share one set of them too, and block_products fills it
 *            again, except for the last block, whose products are still intact
 * Memory     one function lays out a pass of any size, either in an arena or only to count bytes
 *            (engine/device/device.h). The head's logits and the blocks' scratch share memory: logits are
 *            needed only between the blocks' forward and backward passes, when the scratch is unused. A
 *            chunk of logits has at most dt_decoder_logits_bytes; on GPUs, where a product of few rows must still
 *            read the whole head and add to its whole gradient, a chunk is as large as that scratch, in
 *            multiples of 128 rows
 */
#ifndef DT_ENGINE_MODEL_DECODER_H
#define DT_ENGINE_MODEL_DECODER_H

#include "engine/device/device.h"
#include "engine/model/linear.h"
#include "engine/ops/ops.h"
#include "recipes/architecture/tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DECODER_LASTING      5 /* tensors of a kind that outlive a pass */
#define DT_DECODER_BLOCK_BYTES  4096
#define DT_DECODER_BLOCK_PARAMS 32

/* Sequences under incremental decoding, and which of them the current pass extends. */
typedef struct dt_decoder_growth {
    int64_t *tokens;   /* [sequences]: tokens of each so far, before the pass */
    int64_t sequence;  /* the one sequence that the pass extends ... */
    bool each;         /* ... or true: the pass adds one token to each of the first B sequences */
    int64_t longest;   /* if `each`: tokens of the longest of them, with the new token */
    dt_tensor places;  /* I32 (B,1): position of each new token; in device memory, like lengths */
    dt_tensor lengths; /* I32 (B): length of each sequence, places + 1 */
    int32_t *on_host;  /* [2 * sequences]: host copies of places and lengths */
} dt_decoder_growth;

/* With config.beta: memory of a pass over pairs. */
typedef struct dt_decoder_pairs {
    dt_tensor weights;    /* F32 (B,T): of the gradients */
    float *host;          /* (2 B T + B): losses, weights, log ratios */
    dt_pair_sums of_pass; /* of the last pass */
} dt_decoder_pairs;

/* model->state of decoder-only kinds: the tensors of the current pass. */
typedef struct dt_decoder {
    dt_device_arena arena; /* memory of all activations, laid out again by every pass */
    int64_t logits_bytes;  /* limit of a chunk of logits (but at least one row) */
    bool wide_chunks;      /* a chunk can grow to the size of the blocks' scratch */
    int32_t *targets;      /* host copy of a batch's targets, to count them */

    int64_t B, T;
    /* tensors of the kind that outlive a pass, so at the start of the arena: tables, KV cache */
    dt_tensor lasting[DT_DECODER_LASTING];
    dt_decoder_growth growth;
    dt_adapters adapters;
    dt_decoder_pairs pairs;
    /* those of the batch, if it has them (DT_DECODER_STARTS) */
    dt_tensor starts, positions, weights;
    /* position of the pass's first token: 0, or the number of cached tokens */
    int64_t first_position;
    int64_t tables_of; /* of the kind: what its tables in `lasting` were computed for */
    /* [layers + 1] act (B,T,C), the residual stream: the input of each block, then that of the
     * final norm; without backward all are the same memory */
    dt_tensor *stream;
    /* [layers] blocks of the kind's type; without backward all use the same memory */
    void *blocks;
    dt_tensor norm;                 /* act (B,T,C): output of the final norm */
    dt_tensor norm_mean, norm_rstd; /* F32 (B*T): statistics of the final norm; no mean for RMS */
    dt_tensor losses;
    /* The following three only if ranks divide layers. F32 (B,T,C): this rank's terms of a sum; no
     * data if the compute type is F32 */
    dt_tensor terms;
    dt_tensor part_own, part_all; /* F32: own and all of dt_token_head, N = B T */
    void *logits;                 /* (logits_rows,Vp): logits of one chunk */
    void *capped; /* a second one with backward, if the kind caps logits; else NULL */
    int64_t logits_rows;
    dt_tensor
        gathered; /* F32 (ranks,sequences,Vp): parts of the vocabulary, in incremental decoding by several ranks */
    dt_tensor
        narrow;     /* scratch of the blocks, act (B,T,C): a projection's output, or its gradient */
    dt_tensor wide; /* scratch of the blocks, as wide as the kind needs */
    /* The following are used only with backward: */
    /* act (B,T,C): gradient of the residual stream, shared by all blocks; same memory as `norm` */
    dt_tensor dstream;
    /* act (B,T,C), allocated with gradient_columns: gradient of a matrix product's input */
    dt_tensor dnarrow;
} dt_decoder;

/* The layout of a pass of a given size, under construction. */
typedef struct dt_decoder_layout {
    const dt_model_config *config;
    dt_layout memory;
    int64_t B, T;
} dt_decoder_layout;

/* What a kind supplies. Functions receive a block as void *: a struct of block_bytes that the kind
 * defines and the layout copies for each block. */
typedef struct dt_decoder_parts {
    int block_params;   /* number of parameters, at most DT_DECODER_BLOCK_PARAMS */
    size_t block_bytes; /* size of the kind's struct, at most DT_DECODER_BLOCK_BYTES */
    int embedding_param,
        /* parameters of the root; without config.own_lm_head the embedding is the head */
        head_param;
    int kept_first, kept_end; /* range in `lasting` of the KV cache (dt_decoder_take_kept) */
    /* MUST: whether the config omits a parameter (unit 0: of the root) */
    bool (*lacks)(const dt_model_config *config, int unit, int which);

    /* --- memory; each function allocates what its name says */

    /* MUST: first the tensors that outlive a pass (lasting), then the final norm's statistics */
    void (*take_own)(dt_decoder_layout *plan, dt_decoder *state);
    /* MUST: state->wide, and other scratch that blocks share */
    void (*take_scratch)(dt_decoder_layout *plan, dt_decoder *state, void *block, bool backward);
    /* MUST: a block's norms, one set per block */
    void (*take_norms)(dt_decoder_layout *plan, void *block, bool backward);
    /* MUST: the norms that all blocks share if backward recomputes them. The outputs use
     * state->dnarrow, whose contents are not needed at that time */
    void (*share_norms)(dt_decoder_layout *plan, const dt_decoder *state, void *block);
    /* MUST: a block's products except its output. `stream`: memory for the residual sum in the
     * middle of the block; NULL: allocate it */
    void (*take_products)(dt_decoder_layout *plan, void *block, const dt_tensor *stream);
    /* MAY: columns to allocate for dnarrow, if more than C can be needed */
    int64_t (*gradient_columns)(const dt_model_config *config);
    /* MUST: called after the layout of a pass that extends sequences: points the new keys and
     * values into the KV cache, and attention to the cache */
    void (*lay_out_behind)(dt_model *model);
    /* MAY: fills the tables in `lasting`, after the layout has placed them */
    dt_status (*fill_tables)(dt_model *model, dt_error *err);
    /* MAY: the factor of logits, and the cap that follows it (0: none); left out: 1 and 0 */
    double (*logits_factor)(const dt_model_config *config);
    double (*logits_cap)(const dt_model_config *config);

    /* --- arithmetic; all MUST, x and y act (B,T,C) */

    dt_status (*embed_forward)(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                               dt_error *err);
    dt_status (*embed_backward)(dt_model *model, const dt_tensor *dy, const dt_tensor *tokens,
                                dt_error *err);
    dt_status (*block_forward)(const dt_block_call *c, dt_tensor *y, const dt_tensor *x,
                               dt_error *err);
    /* Compute every product that backward reads and its inputs: the first part of block_forward,
     * and what recomputation repeats */
    dt_status (*block_products)(const dt_block_call *c, const dt_tensor *x, dt_error *err);
    /* Turns state->dstream from the gradient of y into the gradient of x. */
    dt_status (*block_backward)(const dt_block_call *c, const dt_tensor *x, dt_error *err);
    /* Run the final norm, into state->norm. */
    dt_status (*norm_forward)(dt_model *model, const dt_tensor *x, dt_error *err);
    /* state->dstream += the gradient of x, given that of the norm's output in state->dnarrow. */
    dt_status (*norm_backward)(dt_model *model, const dt_tensor *x, dt_error *err);
} dt_decoder_parts;

extern const dt_model_passes dt_decoder_passes;

/* --- memory.c */

/* Allocate memory for a tensor whose shape is set. */
void dt_decoder_take(dt_decoder_layout *plan, dt_tensor *tensor);
dt_tensor dt_decoder_take_act(dt_decoder_layout *plan, int64_t width);
dt_tensor dt_decoder_take_stat(dt_decoder_layout *plan, int64_t each);
dt_tensor dt_decoder_take_lse(dt_decoder_layout *plan, int64_t heads);
/* Allocate lasting[which] as a cache, act (layers * sequences, kept, columns), if
 * config.incremental. */
void dt_decoder_take_kept(dt_decoder_layout *plan, dt_decoder *state, int which, int64_t columns);
/* The larger of the sizes of a pass with backward (unless for inference) and one without. */
size_t dt_decoder_count_bytes(const dt_decoder_parts *parts, const dt_model_config *config);
/* Point the state's tensors into the arena for a pass over (B,T). */
void dt_decoder_lay_out(dt_model *model, int64_t B, int64_t T, bool backward);

/* --- residual.c */

/* Views like dt_model_weight's, by the kind's enums. data is NULL if the config omits the
 * parameter. */
dt_tensor dt_decoder_weight(const dt_model *model, int unit, int which);
dt_tensor dt_decoder_grad(const dt_model *model, int unit, int which);
/* Which parameter of the root is the head. */
int dt_decoder_head_param(const dt_model *model);
/* Number of parameters of a block without those of adapters. */
int dt_decoder_block_params(const dt_model *model);

/* Whether a pass applies dropout: false if `dropout` is NULL or the probability is 0. */
bool dt_decoder_drops(const dt_model *model, const dt_batch *dropout);
/* y = onto + dropout(x w^T + b). y may be onto. Overwrites state->narrow. */
dt_status dt_decoder_project(const dt_block_call *c, const dt_linear *linear, dt_tensor *y,
                             const dt_tensor *onto, const dt_tensor *x, dt_philox_op op,
                             dt_error *err);
/* *dy: the gradient of the projection's output: that of the residual stream, passed through the
 * dropout. */
dt_status dt_decoder_project_grad(const dt_block_call *c, dt_tensor *dy, dt_philox_op op,
                                  dt_error *err);
/* y = the embedding of tokens with these weights, summed over the ranks that divide the vocabulary. wpe: positions to
 * add, or no data. */
dt_status dt_decoder_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                           const dt_tensor *wte, const dt_tensor *wpe, double scale, dt_error *err);
/* Arguments of causal attention: within documents if the batch marks them, and over the KV cache if
 * the pass extends each of several sequences. *key: storage that the result points to. */
dt_attention_args dt_decoder_attention_args(const dt_block_call *c, dt_philox_key *key);

/* --- memory.c: the KV cache */

/* Number of sequences the KV cache holds, and the number of tokens it has room for per sequence. */
int64_t dt_decoder_sequences(const dt_model *model);
int64_t dt_decoder_kept_room(const dt_model_config *config);
/* Block `layer`'s rows of `sequence` in cache `which`: (1,rows,columns), starting at token `first`. */
dt_tensor dt_decoder_kept(const dt_model *model, int which, int64_t layer, int64_t sequence,
                          int64_t first, int64_t rows);
/* In a pass that extends each sequence: append columns first .. of made (B,1,all) to the cached
 * rows of each. */
dt_status dt_decoder_keep(dt_model *model, int which, int64_t layer, const dt_tensor *made,
                          int64_t first, dt_error *err);
/* After that: `heads` heads, starting at column `first`, of all cached rows of each sequence. */
dt_heads dt_decoder_kept_heads(const dt_model *model, int which, int64_t layer, int64_t first,
                               int64_t heads, int64_t width);
/* Functions of dt_model_passes (kind.h). */
dt_status dt_decoder_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);
int64_t dt_decoder_extended(const dt_model *model, int64_t sequence);

/* --- passes.c */

/* Functions of dt_model_passes (kind.h). */
dt_status dt_decoder_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                          dt_error *err);
dt_status dt_decoder_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);
dt_status dt_decoder_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                              double *counted, dt_error *err);
dt_status dt_decoder_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                            dt_error *err);
/* Begin lays out a pass without backward over a batch of tokens only. Infer runs it up to the final
 * norm; unit 0 is in use when it returns. */
void dt_decoder_begin(dt_model *model, const dt_batch *batch);
dt_status dt_decoder_infer(dt_model *model, const dt_batch *batch, dt_error *err);

/* --- preference.c */

/* From the losses of all targets: the weights of the gradients, and the sums of the pass. reference: F32 (B,1). */
dt_status dt_decoder_weigh_pairs(dt_model *model, const dt_tensor *reference, bool backward,
                                 dt_error *err);
/* Replace the losses of targets by those of pairs, after the gradients are computed. */
dt_status dt_decoder_put_pair_losses(dt_model *model, dt_error *err);

/* --- passes.c: the head; call after the final norm */

/* Logits of the last positions, copied to the host. */
dt_status dt_decoder_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
