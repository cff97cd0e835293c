/* model: parameters by name, and the forward and backward pass written out block by block.
 *
 * A model is cut into units: unit 0 is the root (embeddings, final norm), unit l+1 is block l.
 * A strategy keeps the storage of every unit's parameters, gradients and optimizer state; the
 * model sees tensors. The pass tells the strategy, through dt_model_hooks, when it is about to
 * use a unit, when it has done with it, and when a unit's gradients are complete.
 *
 * A pass with backward calls the hooks in this order (a pass without stops at the blocks, then
 * after_unit(0, false)):
 *   before 0 fwd, embedding; for each block: before fwd, forward, after fwd; final norm,
 *   after 0 fwd; before 0 bwd, head and loss; for each block, last first: before bwd, backward,
 *   after bwd, grads ready; embedding backward, after 0 bwd, root's grads ready.
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
 *            most), and the table of sinusoidal positions.
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
 * Ownership  dt_model borrows device and hooks; activations are the model's own
 * Threads    one thread per model
 */
#ifndef DT_ENGINE_MODEL_H
#define DT_ENGINE_MODEL_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/tensor.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_init_kind { DT_INIT_ZERO, DT_INIT_ONE, DT_INIT_NORMAL } dt_init_kind;

typedef struct dt_param {
    char name[48]; /* GPT-2's published names: "wte.weight", "h.0.attn.c_attn.weight", ... */
    int unit;
    int ndim;
    int64_t dim[2];
    int64_t elems;
    int64_t offset_elems; /* in the unit's flat buffer; each starts at a multiple of 16 elements */
    dt_init_kind init;
    double init_std;
    bool decay; /* two or more dimensions */
} dt_param;

/* A hidden layer's matrix, which some optimizers step whole: embeddings and head are in the root. */
static inline bool dt_param_is_matrix(const dt_param *param)
{
    return param->ndim == 2 && param->unit > 0;
}

typedef struct dt_unit {
    int first_param, param_count;
    int64_t elems; /* of the flat buffer, gaps between parameters included (kept zero) */
} dt_unit;

#define DT_VOCAB_MULTIPLE 128

typedef struct dt_model_config {
    int64_t layers, heads, embed;
    int64_t vocab, vocab_padded; /* padded to a multiple of DT_VOCAB_MULTIPLE */
    int64_t context;             /* longest T: rows of the position embedding */
    int64_t batch, tokens;       /* the B and T of the largest pass: sizes the activations */
    double dropout, attention_dropout;
    dt_activation_kind activation;
    dt_positions_kind positions;
    bool scale_embedding; /* token embeddings times sqrt(embed) */
    bool own_lm_head;     /* the head is "lm_head.weight", not the token embedding */
    dt_recompute_kind recompute;
    dt_dtype dtype;   /* of activations and of the weights that enter ops: F32, BF16 or F16 */
    bool inference;   /* no backward: activations of one block only */
    bool incremental; /* inference: room for what dt_model_extend keeps, (L, context, 3C) */
} dt_model_config;

/* One micro-step's batch: B*T within config.batch * config.tokens, T within config.context,
 * tokens within the vocabulary (anything else is a bug). targets may be left out (NULL data) for
 * logits only. */
typedef struct dt_batch {
    dt_tensor tokens, targets; /* I32 (B,T), device memory; target < 0: not counted */
    uint64_t seed;
    uint32_t step, micro_step, data_rank; /* Philox key of dropout */
    const struct dt_philox_clock *clock;  /* MAY be NULL; else in device memory, instead of step and
                                           * micro_step (engine/philox.h) */
} dt_batch;

/* What the pass calls while it runs; each MAY be NULL. `self` is handed through. */
typedef struct dt_model_hooks {
    void *self;
    dt_status (*before_unit)(void *self, int unit, bool backward, dt_error *err);
    dt_status (*after_unit)(void *self, int unit, bool backward, dt_error *err);
    /* unit's gradients got their last contribution of this micro-step (root last of all: the tied
     * embedding gets one from either end) */
    dt_status (*unit_grads_ready)(void *self, int unit, dt_error *err);
    /* Points weights and grads of all units where a pass will find each when its turn comes, and
     * does nothing else: for a pass that is recorded without its hooks. NULL: they are there. */
    void (*place_units)(void *self);
} dt_model_hooks;

typedef struct dt_model {
    dt_model_config config;
    dt_device *device;
    dt_param *params;
    int param_count;
    dt_unit *units;
    int unit_count; /* layers + 1 */
    /* Set by the strategy before a pass, per unit: flat buffers. */
    void **weights;              /* in config.dtype */
    float **grads;               /* F32; NULL for inference */
    const dt_model_hooks *hooks; /* may be NULL */
    struct dt_gpt2_state *state;
    size_t activation_bytes;
} dt_model;

/* Its parameters and units alone, without a device: for who compares them. NULL is accepted. */
dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err);
void dt_model_description_free(dt_model *model);

/* DT_ERR_NOMEM when the activations do not fit. */
dt_status dt_model_open(dt_model **out, const dt_model_config *config, dt_device *device,
                        dt_error *err);
void dt_model_close(dt_model *model);

/* What dt_model_open will take, for a config that it accepts. */
size_t dt_model_activation_bytes(const dt_model_config *config);

/* Elements of all parameters, padding of the vocabulary included: the token embedding twice where
 * the head is untied, no positions where they are sinusoidal. */
int64_t dt_model_param_elems(const dt_model *model);
/* 6 N + 12 L C T, see flops.c; the same for a tied head and an untied one, and whatever is computed
 * again: a share of the peak counts the model's work, not the program's. */
double dt_model_flops_per_token(const dt_model_config *config);

/* Fills one parameter's fp32 values on the host, the same whatever the strategy: a pure function
 * of seed and the parameter's place in the table. Padded rows of the embedding are zero. */
void dt_model_init_param(float *out, const dt_model *model, int param, uint64_t seed);
/* Its elements first .. first + elems alone: the same bits, by all threads of the device. */
void dt_model_init_range(float *out, const dt_model *model, int param, int64_t first, int64_t elems,
                         uint64_t seed);

/* Forward and backward of one micro-step: the ops, which the host does not wait for and which may
 * be recorded (device/graph.h). Gradients accumulate into grads. loss_scale: 1 / valid tokens of
 * the whole step. */
dt_status dt_model_pass(dt_model *model, const dt_batch *batch, double loss_scale, dt_error *err);
/* After it, for the same batch: the sum of token losses (not yet divided), which the host waits
 * for. */
dt_status dt_model_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);

/* Forward only, dropout off; the sum of token losses and the number of counted tokens. */
dt_status dt_model_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                            int64_t *counted, dt_error *err);

/* Forward only; logits of the last `last` positions of each sequence, F32 (B, last, V) in host
 * memory. */
dt_status dt_model_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                          dt_error *err);

/* One sequence that grows: the logits behind the last of `tokens` (I32 (1,n), device memory), given
 * those of all earlier calls; F32 (V) in host memory. As dt_model_logits over the whole sequence
 * but for rounding, at the cost of n tokens: q, k and v of earlier ones are kept. For
 * config.incremental; other passes in between leave the sequence alone. More than config.context
 * tokens in all is a bug. */
dt_status dt_model_extend(dt_model *model, const dt_tensor *tokens, float *logits, dt_error *err);
int64_t dt_model_extended(const dt_model *model); /* tokens so far */

#ifdef __cplusplus
}
#endif
#endif
