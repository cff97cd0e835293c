/* linear: computes y = x w^T + b and its gradients. Every product of a kind with a weight is one of these calls, so
 * that whatever concerns all weights of a model is written in linear.c alone, and in no kind.
 *
 * Frozen     a parameter that is not trained has no gradient (dw or db without data): backward then computes only
 *            the other gradients
 * Ranks      a weight that tensor ranks divide by rows makes a rank's columns of y; dx is a sum over the ranks. One
 *            that they divide by columns makes a sum; dx is a rank's columns. Without such ranks nothing is summed
 * Fused      a device may add y to another tensor, or apply GELU, in the same op; dt_linear_fuses_* say whether
 * Copies     a copy of w in another form (packed for a processor, 8-bit with scales) is a member next to w, set by
 *            dt_linear_of, and read by the three functions of linear.c that call a product
 * Adapter    of low rank (adapter.h): a member too, set by dt_linear_of from `block->adapters`. dt_linear_forward
 *            adds its term before it sums over ranks, dt_linear_backward its gradients and its term of dx;
 *            dt_linear_fuses_* are false in a model with adapters
 * N rows, I and O columns of x and y
 * Ownership  everything is borrowed
 * Threads    the model's
 */
#ifndef DT_ENGINE_MODEL_LINEAR_H
#define DT_ENGINE_MODEL_LINEAR_H

#include "engine/model/adapter.h"
#include "engine/model/kind.h"

/* How the tensor ranks divide w (recipes/architecture/architecture.h). */
typedef enum dt_linear_cut {
    DT_LINEAR_WHOLE, /* each has all of it; or the caller sums */
    DT_LINEAR_ROWS,
    DT_LINEAR_COLUMNS /* one rank alone adds b */
} dt_linear_cut;

typedef struct dt_linear {
    dt_tensor w;            /* act (O,I): what this rank holds */
    dt_tensor b;            /* act (O); no data: none */
    dt_tensor dw, db;       /* F32, like w and b; no data: frozen, or a pass without backward */
    dt_linear_cut cut;      /* how ranks divide w */
    bool first;             /* dw is overwritten (dt_model.overwrites) */
    const dt_tensor *terms; /* with a cut: F32 memory for a rank's terms (dt_layer_term) */
    dt_adapter adapter;
} dt_linear;

/* A block in a pass. */
typedef struct dt_block_call {
    dt_model *model;
    int layer; /* the block's number; its unit is layer + 1 */
    const dt_tensor
        *w;        /* its weights, in the order of the kind's enum; no data: the config omits it */
    dt_tensor *dw; /* F32: gradients, likewise; no data also if frozen. NULL in a forward pass */
    const dt_batch *dropout;     /* where masks are drawn from; NULL: no dropout */
    const dt_tensor *terms;      /* dt_linear.terms */
    const dt_adapters *adapters; /* NULL: the kind has none */
} dt_block_call;

/* Parameters w_first .. w_last of the block, joined to one weight (dt_param_shape), with biases b_first .. b_last. */
dt_linear dt_linear_of(const dt_block_call *block, int w_first, int w_last, int b_first, int b_last,
                       dt_linear_cut cut);

/* Takes the gradient of the bias from the layer, for an op that sums dy's columns while it reads or writes dy anyway:
 * backward then leaves it out. No data if there is none, or if `fuses` is false. */
static inline dt_tensor dt_linear_take_db(dt_linear *linear, bool fuses)
{
    dt_tensor db = linear->db;

    if (fuses)
        linear->db.data = NULL;
    else
        db.data = NULL;
    return db;
}

/* y = x w^T + b.   y act or F32 (N,O)  x act (N,I) */
dt_status dt_linear_forward(dt_model *model, const dt_linear *linear, dt_tensor *y,
                            const dt_tensor *x, dt_error *err);
/* Gradients of w and b, which accumulate; then dx = dy w, unless dx is NULL. dx may be the memory of x, not of dy. */
dt_status dt_linear_backward(dt_model *model, const dt_linear *linear, dt_tensor *dx,
                             const dt_tensor *dy, const dt_tensor *x, dt_error *err);

/* --- with another op in the same call; cut must not be columns with ranks */

/* Whether one op computes y = onto + x w^T + b; y must not be onto. Not with adapters. */
bool dt_linear_fuses_sum(const dt_model *model);
dt_status dt_linear_forward_onto(dt_model *model, const dt_linear *linear, dt_tensor *y,
                                 const dt_tensor *onto, const dt_tensor *x, dt_error *err);
/* Whether one op computes pre = x w^T + b and y = GELU(pre). Not with adapters. */
bool dt_linear_fuses_gelu(const dt_model *model);
dt_status dt_linear_forward_gelu(dt_model *model, const dt_linear *linear, dt_tensor *y,
                                 dt_tensor *pre, const dt_tensor *x, dt_error *err);
/* Like dt_linear_backward for the x = activation(pre) of a layer before: dpre (N,I) is the gradient of pre. It may be
 * the memory of x. */
dt_status dt_linear_backward_activated(dt_model *model, const dt_linear *linear, dt_tensor *dpre,
                                       const dt_tensor *dy, const dt_tensor *x,
                                       const dt_tensor *pre, dt_activation_kind activation,
                                       dt_error *err);

/* --- sums over the ranks that divide a layer; without such ranks they do nothing.
 *
 * A product whose weight is divided by rows (DT_CUT_ROWS) has a rank's columns as output; the gradient of its input
 * is a sum. A product whose weight is divided by columns has a sum as output; the gradient of its input is a rank's
 * columns. So a block sums twice in each direction: what it adds to the residual stream, and the gradients of the
 * inputs of its norms' products. */

/* Where a rank writes its term of y: in F32, so that the sum is rounded once. That is y itself if y is F32 or layers
 * are whole; otherwise `terms`, F32 and as large as y. */
dt_tensor dt_layer_term(const dt_model *model, const dt_tensor *y, const dt_tensor *terms);
/* y = the sum of the ranks' terms. */
dt_status dt_layer_sum(dt_model *model, dt_tensor *y, const dt_tensor *term, dt_error *err);
/* Whether this rank adds what one rank alone adds to a sum, such as a bias or positions. */
bool dt_layer_adds_once(const dt_model *model);

#endif
