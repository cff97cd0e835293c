/* model: parameters by name, and the forward and backward pass over a batch, whatever the kind.
 *
 * A model is cut into units: unit 0 is the root (what both ends of a pass use), unit l+1 is block
 * l. A strategy keeps the storage of every unit's parameters, gradients and optimizer state; the
 * model sees tensors. The pass tells the strategy, through dt_model_hooks, when it is about to
 * use a unit, when it has done with it, and when a unit's gradients are complete.
 *
 * A pass with backward calls the hooks in this order, whatever the kind (a pass without stops at
 * the blocks, then after_unit(0, false)):
 *   before 0 fwd, what leads to the blocks; for each block: before fwd, forward, after fwd; what
 *   follows them, after 0 fwd; before 0 bwd, head and loss; for each block, last first: before
 *   bwd, backward, after bwd, grads ready; what is left, after 0 bwd, root's grads ready.
 *
 * What a kind is: as arithmetic recipes/architecture/architecture.h, as computation kind.h, which
 * each folder beside this file fills in.
 * Recompute  what backward reads, kept or computed again (config.recompute); the same bits in all
 *            ways, as masks are drawn from keys
 * Ownership  dt_model borrows device and hooks; activations are the model's own
 * Threads    one thread per model
 */
#ifndef DT_ENGINE_MODEL_H
#define DT_ENGINE_MODEL_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/device/device.h"
#include "engine/tensor.h"
#include "recipes/architecture/architecture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One micro-step's batch: the tensors that the kind's architecture names, in its order, in device
 * memory. The first dimension of each is the samples, config.batch at most; a sample has as many
 * elements as the architecture says, or fewer, and ids are within their vocabulary (anything else
 * is a bug). Targets may be left out (NULL data) for logits only. */
typedef struct dt_batch {
    dt_tensor inputs[DT_INPUTS_MAX];
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

struct dt_model_kind; /* kind.h */

typedef struct dt_model {
    dt_model_config config;
    const struct dt_model_kind *kind;
    dt_device *device;
    dt_param *params;
    int param_count;
    dt_unit *units;
    int unit_count; /* blocks + 1 */
    /* Set by the strategy before a pass, per unit: flat buffers. */
    void **weights;              /* in config.dtype */
    float **grads;               /* F32; NULL for inference */
    const dt_model_hooks *hooks; /* may be NULL */
    void *state;                 /* the kind's */
    dt_arena arena;              /* of the table of parameters */
    size_t activation_bytes;
} dt_model;

/* Its parameters and units alone, without a device: for who compares them. NULL is accepted. */
dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err);
void dt_model_description_free(dt_model *model);

/* DT_ERR_RECIPE for a config that cannot be, DT_ERR_NOMEM when the activations do not fit. */
dt_status dt_model_open(dt_model **out, const dt_model_config *config, dt_device *device,
                        dt_error *err);
void dt_model_close(dt_model *model);

/* What dt_model_open will take, for a config that it accepts. */
size_t dt_model_activation_bytes(const dt_model_config *config);

/* Elements of all parameters, padding included. */
int64_t dt_model_param_elems(const dt_model *model);

/* Fills one parameter's fp32 values on the host, the same whatever the strategy: a pure function
 * of seed and the parameter's place in the table. Rows of padding are zero. */
void dt_model_init_param(float *out, const dt_model *model, int param, uint64_t seed);
/* Its elements first .. first + elems alone: the same bits, by all threads of the device. */
void dt_model_init_range(float *out, const dt_model *model, int param, int64_t first, int64_t elems,
                         uint64_t seed);

/* Calls `visit` for each unit while its weights can be read, in the order and with the hooks of a forward
 * pass. */
dt_status dt_model_visit_units(dt_model *model,
                               dt_status (*visit)(void *self, int unit, dt_error *err), void *self,
                               dt_error *err);

/* Forward and backward of one micro-step: the ops, which the host does not wait for and which may
 * be recorded (device/graph.h). Gradients accumulate into grads. loss_scale, in the device's memory:
 * 1 / valid targets of the whole step. */
dt_status dt_model_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                        dt_error *err);
/* After it, for the same batch: the sum of the targets' losses (not yet divided), which the host
 * waits for. */
dt_status dt_model_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);

/* Forward only, dropout off; the sum of the targets' losses, and the number of those counted. */
dt_status dt_model_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                            int64_t *counted, dt_error *err);

/* --- of kinds that make text; logits too of those that translate */

typedef struct dt_model_text {
    int64_t context; /* tokens that a pass sees at most */
    int64_t vocab;   /* logits of each */
} dt_model_text;
/* Asked first: DT_ERR_UNSUPPORTED where the kind makes none; then what follows is a bug. */
dt_status dt_model_text_of(dt_model_text *out, const dt_model *model, dt_error *err);

/* Forward only; logits of the last `last` positions of each sequence, F32 (B, last, V) in host
 * memory. */
dt_status dt_model_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                          dt_error *err);

/* Sequences that grow side by side, config.sequences of them, for config.incremental: what earlier tokens
 * left is kept, and other passes in between leave it alone. The logits are dt_model_logits' over the whole
 * sequence but for rounding, and of one sequence have the same bits whatever the others are. More than
 * config.kept tokens of one is a bug. */

/* The logits behind the last of `tokens` (I32 (1,n), device memory), given those of all earlier calls; F32
 * (V) in host memory. */
dt_status dt_model_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens, float *logits,
                          dt_error *err);
/* One token more of each of the first K: tokens I32 (K,1), device memory; logits (K,V). Each has some. */
dt_status dt_model_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                               dt_error *err);
/* Sequence `to` becomes what `from` is; DT_SEQUENCE_EMPTY: one without tokens. */
#define DT_SEQUENCE_EMPTY (-1)
dt_status dt_model_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);
int64_t dt_model_extended(const dt_model *model, int64_t sequence); /* tokens so far */

/* --- of kinds that translate: config.sequences sentences side by side, each in config.versions versions
 * that grow. For config.incremental; DT_ERR_UNSUPPORTED where the kind translates nothing. A sentence's
 * place is another's by dt_model_replace, which knows no empty one here */

/* Begins a sentence with source (I32 (1,S), device memory, without padding): the keys and values of it that
 * every block of the decoder attends to are kept. */
dt_status dt_model_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
                             dt_error *err);
/* One token more of every version of the first K / config.versions sentences, K rows: `previous` (I32 (K,1),
 * device memory) is what each version ended in, parents[k] which row of the same sentence it continues,
 * which continues itself. F32 (K,V) in host memory, as dt_model_logits behind the whole version but for
 * rounding, at the cost of one token; the same bits whatever the other sentences are, as dt_model_extend
 * has it. More than the context's tokens is a bug. */
dt_status dt_model_translate_next(dt_model *model, const dt_tensor *previous,
                                  const int32_t *parents, float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
