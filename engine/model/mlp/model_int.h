/* model_int: declares what the files of the MLP's pass share.
 *
 *   rows ─(cast)─ layer 0 ─ activation ─ ... ─ layer L-1 ─ activation ─ head ─ loss
 *
 * Reading order  memory.c  which activations a pass keeps
 *                block.c   one layer, forward and backward
 *                head.c    outputs and loss
 *                kind.c    whole passes, and when the hooks are called
 *
 * B rows of a batch; I W O L as in recipes/architecture/kinds.h; act: config.dtype.
 */
#ifndef DT_ENGINE_MODEL_MLP_INT_H
#define DT_ENGINE_MODEL_MLP_INT_H

#include "engine/model/linear.h"
#include "engine/ops/ops.h"

typedef struct dt_mlp_layer {
    dt_tensor sums; /* act (B,W): sums x w^T + b, before the activation */
    /* act (B,W): activation(sums); sums itself without backward; shared by all layers under
     * recompute */
    dt_tensor out;
} dt_mlp_layer;

typedef struct dt_mlp_state {
    dt_device_arena arena; /* memory of all activations, laid out again by every pass */
    void *targets;         /* host copy of a batch's targets, to count them */

    int64_t B;            /* rows of the current pass */
    dt_tensor rows;       /* act (B,I): the batch's own tensor if act is F32 */
    dt_mlp_layer *layers; /* [L] layers */
    dt_tensor outputs;    /* (B,O) act, or F32 without backward; later their gradient */
    dt_tensor losses;     /* F32 (B): loss of each row */
    /* act (B,W): gradient of a layer's output, and memory for the next one */
    dt_tensor dout, dspare;
} dt_mlp_state;

/* --- memory.c */
size_t dt_mlp_activation_bytes(const dt_model_kind *kind, const dt_model_config *config);
/* Point the state's tensors into the arena for a pass over B rows. */
void dt_mlp_lay_out(dt_model *model, int64_t B, bool backward);

/* --- block.c */
/* The linear layer of a unit; backward: with its gradients. */
dt_linear dt_mlp_linear(const dt_model *model, int unit, bool backward);
/* these functions do not read the batch */
dt_status dt_mlp_layer_forward(dt_model *model, int layer, const dt_batch *batch, dt_error *err);
/* Turns state->dout from the gradient of the layer's output into that of its input. */
dt_status dt_mlp_layer_backward(dt_model *model, int layer, const dt_batch *batch, dt_error *err);
/* The input of layer `layer`, or of the head for L. */
const dt_tensor *dt_mlp_input_of(const dt_mlp_state *state, int layer);

/* --- head.c; call once the last layer's output is computed */
dt_status dt_mlp_head_forward(dt_model *model, dt_error *err);
/* Losses; gradients of the head's parameters, and of its input, into state->dout. */
dt_status dt_mlp_head_train(dt_model *model, const dt_tensor *targets, const double *loss_scale,
                            dt_error *err);
/* Compute the losses only. */
dt_status dt_mlp_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err);
/* Count the targets that count: rows for classes, single numbers for regression. */
dt_status dt_mlp_count(int64_t *counted, dt_model *model, const dt_tensor *targets, dt_error *err);

#endif
