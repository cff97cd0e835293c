/* model_harness: opens a model with storage for its parameters, in the simplest way that a strategy could.
 *
 * Errors  a failing call fails the running test
 */
#ifndef DT_TESTS_MODEL_HARNESS_H
#define DT_TESTS_MODEL_HARNESS_H

#include "engine/model/model.h"

typedef struct harness {
    dt_device device;
    dt_model *model;
    float **values; /* fp32 parameters, per unit; the weights are these or a copy in BF16 */
    float **frozen; /* the same of parameters that are not trained */
    int32_t *tokens, *targets; /* host memory for one batch of the config's size */
    int32_t *source;           /* for models with a source; `tokens` is then the decoder's input */
    dt_batch batch;            /* views of these, (batch, tokens) */
} harness;

/* Returns a config with small layers, embed, heads, vocab, context, batch and tokens. */
dt_model_config harness_config(void);

void harness_open(harness *out, const dt_model_config *config);
void harness_close(harness *h);

/* Sets values from the seed, with norms and biases moved off 1 and 0, and copies them to the weights. */
void harness_init(harness *h, uint64_t seed);
/* Copies values to the weights, in the weights' type. */
void harness_values_changed(harness *h);
void harness_zero_grads(harness *h);
int64_t harness_vocab(const harness *h);
/* Fills random tokens and targets; about a fifth of the targets do not count. Returns the number
 * that counts. Two thirds of the rows of source end in padding. */
int64_t harness_fill_batch(harness *h, uint64_t seed);
/* A view of `count` sequences from `first` on. */
dt_batch harness_batch(const harness *h, int64_t first, int64_t count);

float *harness_value(const harness *h, int param);
float *harness_grad(const harness *h, int param);
int harness_param(const harness *h, const char *name);
/* Returns the state of the last pass of a model that predicts tokens. */
struct dt_decoder *harness_state(const harness *h);

/* All gradients as one array of `*elems`; the caller frees it. */
float *harness_copy_grads(const harness *h, int64_t *elems);

/* Runs forward and backward over the batch; returns the sum of losses. */
double harness_pass(harness *h, const dt_batch *batch, double loss_scale);

/* --- recomputation */
/* keep_all, none, selective, full: each recomputes more than the one before */
#define HARNESS_RECOMPUTE_KINDS 4
extern const dt_recompute_kind harness_recompute_kinds[HARNESS_RECOMPUTE_KINDS];
/* Opens a model of the config with values and a batch of fixed seeds; returns the targets that count. */
int64_t harness_open_filled(harness *h, const dt_model_config *config);
/* A batch of another shape than h->batch, in `room` if it needs memory. */
typedef dt_batch harness_second(harness *h, int32_t *room);
#define HARNESS_ROOM 256 /* elements of `room` */
/* Fails unless every kind of recomputation gives the loss and gradients of none, to the bit, over h->batch and a second
 * micro-step. second NULL: the first three sequences of h->batch. */
void harness_expect_same_bits(dt_model_config config, const char *what, harness_second *second);

/* A pass in which weights exist only between before_unit and after_unit, as fsdp gathers them. calls, of `size` bytes:
 * gets the hooks in their order, "b0" before unit 0, 'a' after it, capitals in the backward pass, 'r' gradients
 * ready. */
void harness_pass_with_hooks(harness *h, char *calls, size_t size);
/* Fails if, under any kind of recomputation, a pass needs a weight outside of its hooks. */
void harness_expect_hooked_weights(dt_model_config config);
/* Fails unless, under every kind of recomputation, a pass takes exactly the activation memory that was computed. */
void harness_expect_full_arena(dt_model_config config);

/* Fails unless the config is refused with DT_ERR_RECIPE and a message that holds `part`. */
void harness_expect_refused(dt_model_config config, const char *part);

/* |a - b| / |b| in the 2-norm */
double relative_norm(const float *a, const float *b, int64_t elems);

#endif
