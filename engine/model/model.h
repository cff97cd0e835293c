/* model: holds parameters by name and runs forward and backward passes over a batch, for any kind.
 *
 * A model is divided into units: unit 0 is the root (what both ends of a pass use), unit l+1 is block
 * l. A strategy owns the storage of every unit's parameters, gradients and optimizer state; the
 * model sees tensors. Through dt_model_hooks a pass notifies the strategy before it uses a unit, when
 * it no longer needs the unit, and when a unit's gradients are complete.
 *
 * A pass with backward calls the hooks in this order, for any kind (a pass without backward ends after
 * the blocks with after_unit(0, false)):
 *   before 0 fwd, the part before the blocks; for each block: before fwd, forward, after fwd; the part
 *   after the blocks, after 0 fwd; before 0 bwd, head and loss; for each block, last first: before
 *   bwd, backward, after bwd, grads ready; the rest of backward, after 0 bwd, root's grads ready.
 *
 * recipes/architecture/architecture.h describes a kind by its numbers, kind.h by its computation; each
 * folder next to this file implements one.
 * Recompute  what backward reads is kept or recomputed (config.recompute); the results are bit-identical
 *            in all modes, as masks are drawn from keys
 * Ownership  dt_model borrows device and hooks; it owns its activations
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

/* Batch of one micro-step: the tensors that the kind's architecture names, in its order, in device
 * memory. The first dimension of each is the samples, at most config.batch. A sample has at most
 * the number of elements that the architecture says, and ids are within their vocabulary (anything
 * else is a bug). Targets may be omitted (NULL data) if only logits are computed. */
typedef struct dt_batch {
    dt_tensor inputs[DT_INPUTS_MAX];
    uint64_t seed;
    uint32_t step, micro_step, data_rank; /* for the Philox key of dropout */
    /* MAY be NULL; otherwise in device memory, and replaces step and micro_step
     * (engine/philox.h) */
    const struct dt_philox_clock *clock;
} dt_batch;

/* Functions that a pass calls; each MAY be NULL. `self` is passed to each. */
typedef struct dt_model_hooks {
    void *self;
    dt_status (*before_unit)(void *self, int unit, bool backward, dt_error *err);
    dt_status (*after_unit)(void *self, int unit, bool backward, dt_error *err);
    /* the unit's gradients got their last contribution of this micro-step (the root comes last: a
     * tied embedding gets one from both ends) */
    dt_status (*unit_grads_ready)(void *self, int unit, dt_error *err);
    /* Point weights, frozen and grads of all units to where a pass will find each of them in its turn, and
     * do nothing else: for a pass that is recorded without hooks. NULL: they already are */
    void (*place_units)(void *self);
} dt_model_hooks;

/* The ranks that divide every layer, if config.tensor has several (layer_comm in engine/strategy/strategy.h).
 * Their calls are ordered with the device's ops, like an op. All of them make the same calls in the same order. */
typedef struct dt_layer_peers {
    void *self;
    /* sum over the ranks, in place; F32 */
    dt_status (*sum)(void *self, const dt_tensor *x, dt_error *err);
    /* all (ranks, ...): the `own` of each rank, in order */
    dt_status (*gather)(void *self, const dt_tensor *all, const dt_tensor *own, dt_error *err);
} dt_layer_peers;

struct dt_model_kind; /* declared in kind.h */

typedef struct dt_model {
    dt_model_config config;
    const struct dt_model_kind *kind;
    dt_device *device;
    dt_param *params;
    int param_count;
    dt_unit *units;
    int unit_count; /* number of blocks + 1 */
    /* Flat buffers per unit, set by the strategy before a pass: */
    void **weights;              /* per unit: weights in config.dtype */
    void **frozen;               /* per unit: those of parameters that are not trained */
    float **grads;               /* per unit: gradients in F32; NULL for inference */
    const dt_model_hooks *hooks; /* the strategy's hooks; can be NULL */
    const dt_layer_peers *peers; /* NULL: this rank has whole layers */
    bool adapter_off;            /* passes compute the base of an adapter alone */
    /* Set by the strategy for a pass: gradients for which dt_model_can_overwrite is true are overwritten, and need
     * not be zero before; the others accumulate. Backward needs no memory for it, and gives the same bits */
    bool overwrites;
    void *state;    /* data of the kind */
    dt_arena arena; /* memory of the parameter table */
    size_t activation_bytes;
} dt_model;

/* Build only the parameter and unit tables, without a device, to compare models. Free accepts NULL. */
dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err);
void dt_model_description_free(dt_model *model);

/* DT_ERR_RECIPE for an invalid config, DT_ERR_NOMEM if the activations do not fit. */
dt_status dt_model_open(dt_model **out, const dt_model_config *config, dt_device *device,
                        dt_error *err);
void dt_model_close(dt_model *model);

/* Bytes that dt_model_open will allocate for a valid config. */
size_t dt_model_activation_bytes(const dt_model_config *config);

/* Whether a pass can overwrite the gradient of a parameter: it is that of one product, and the device has the op. */
bool dt_model_can_overwrite(const dt_model *model, const dt_param *param);

/* Elements of all parameters, including padding. */
int64_t dt_model_param_elems(const dt_model *model);

/* Fill one parameter's fp32 values on the host. The values depend only on the seed and the
 * parameter's index in the table, so they are the same for every strategy. Rows of padding are
 * zero. */
void dt_model_init_param(float *out, const dt_model *model, int param, uint64_t seed);
/* The same for elements first .. first + elems of the whole parameter: identical bits, computed by
 * all threads of the device. */
void dt_model_init_range(float *out, const dt_model *model, int param, int64_t first, int64_t elems,
                         uint64_t seed);

/* Call `visit` for each unit while its weights are readable, in the order and with the hooks of a
 * forward pass. */
dt_status dt_model_visit_units(dt_model *model,
                               dt_status (*visit)(void *self, int unit, dt_error *err), void *self,
                               dt_error *err);

/* Forward and backward of one micro-step. Enqueues the ops without waiting, so that they can be
 * recorded (engine/device/queue.h). Gradients accumulate into grads. loss_scale, in device memory: 1 /
 * sum of the weights of the valid targets of the whole step. */
dt_status dt_model_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                        dt_error *err);
/* After dt_model_pass, for the same batch: waits for and returns the sum of the targets' losses
 * (not yet divided). */
dt_status dt_model_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);

/* Forward only, without dropout: the sum of the targets' losses, and of the weights of the targets that
 * count: their number, if the batch has no weights. */
dt_status dt_model_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                            double *counted, dt_error *err);

/* Adds 1 to counts[class * classes + predicted class] for each row of the last dt_model_evaluate whose class counts and
 * whose outputs are finite; of equal outputs the first class is predicted. classes: dt_model_classes. */
dt_status dt_model_count_classes(dt_model *model, int64_t *counts, dt_error *err);
/* Number of classes that the model tells apart; 0: the model is not a classifier. */
int64_t dt_model_classes(const dt_model *model);

/* --- for config.decoder.beta: pairs of answers (engine/model/decoder/preference.c) */

/* Sums over pairs that count. margin: beta times by how much the chosen answer's log ratio to the reference exceeds the
 * rejected one's; right: pairs in which it does. */
typedef struct dt_pair_sums {
    double loss, margin;
    int64_t pairs, right;
} dt_pair_sums;

/* Those of the last pass, and of each of its samples log p(chosen) - log p(rejected); valid until the next pass. */
void dt_model_pairs(dt_pair_sums *out, const float **log_ratios, const dt_model *model);

/* --- for kinds that generate text; logits also for those that translate */

typedef struct dt_model_text {
    int64_t context; /* maximum tokens of a pass */
    int64_t vocab;   /* number of logits per position */
} dt_model_text;
/* Call this first: DT_ERR_UNSUPPORTED if the kind cannot generate text; the functions below are
 * then a bug. */
dt_status dt_model_text_of(dt_model_text *out, const dt_model *model, dt_error *err);

/* Forward only: logits of the last `last` positions of each sequence, F32 (B, last, V) in host
 * memory. */
dt_status dt_model_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                          dt_error *err);

/* Incremental decoding of config.sequences sequences, if config.incremental: keys and values of
 * earlier tokens are cached, and other passes in between do not disturb the cache. Logits equal
 * dt_model_logits' over the whole sequence except for rounding, and those of one sequence have the
 * same bits whatever the others are. More than config.kept tokens in a sequence is a bug. */

/* Append `tokens` (I32 (1,n), device memory) to a sequence. logits: F32 (V) in host memory, those
 * after the last token. */
dt_status dt_model_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens, float *logits,
                          dt_error *err);
/* Append one token to each of the first K sequences, none of them empty: tokens I32 (K,1), device
 * memory; logits (K,V). */
dt_status dt_model_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                               dt_error *err);
/* Make sequence `to` a copy of `from`; DT_SEQUENCE_EMPTY: make it empty. */
#define DT_SEQUENCE_EMPTY (-1)
dt_status dt_model_replace(dt_model *model, int64_t to, int64_t from, dt_error *err);
/* number of tokens of the sequence so far */
int64_t dt_model_extended(const dt_model *model, int64_t sequence);

/* --- for kinds that translate: config.sequences sentences at once, each with config.versions
 * hypotheses that are extended. For config.incremental; DT_ERR_UNSUPPORTED if the kind cannot
 * translate. dt_model_replace copies a sentence to another; DT_SEQUENCE_EMPTY is not allowed here */

/* Start translating `source` (I32 (1,S), device memory, without padding) as `sentence`: caches the
 * keys and values for cross attention in every block of the decoder. */
dt_status dt_model_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
                             dt_error *err);
/* Append one token to every hypothesis of the first K / config.versions sentences, K rows.
 * `previous` (I32 (K,1), device memory): the last token of each hypothesis. parents[k]: which row
 * of the same sentence row k continues; that row must continue itself. logits: F32 (K,V) in host
 * memory, equal to dt_model_logits over the whole hypothesis except for rounding, at the cost of
 * one token; the same bits whatever the other sentences are. More tokens than the context is a bug. */
dt_status dt_model_translate_next(dt_model *model, const dt_tensor *previous,
                                  const int32_t *parents, float *logits, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
