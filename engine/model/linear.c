/* linear: sums over the ranks that divide a layer, and linear layers. */
#include "engine/model/linear.h"

#include "engine/ops/ops.h"

/* --- sums over the ranks that divide a layer */

dt_tensor dt_layer_term(const dt_model *model, const dt_tensor *y, const dt_tensor *terms)
{
    dt_tensor term = *y;

    if (model->peers == NULL || y->dtype == DT_F32)
        return term;
    term.dtype = DT_F32;
    term.data = terms->data;
    return term;
}

dt_status dt_layer_sum(dt_model *model, dt_tensor *y, const dt_tensor *term, dt_error *err)
{
    dt_status st = DT_OK;

    if (model->peers == NULL)
        return DT_OK;
    DT_TRY(model->peers->sum(model->peers->self, term, err));
    if (term->data != y->data)
        DT_TRY(model->device->ops->cast(model->device, y, term, err));
out:
    return st;
}

bool dt_layer_adds_once(const dt_model *model)
{
    return model->peers == NULL || model->config.tensor.rank == 0;
}

/* The tensors of parameters first .. last, which are joined, as one with all their rows. No data if the
 * first has none. */
static dt_tensor linear_joined(const dt_tensor *params, int first, int last)
{
    dt_tensor all = params[first];

    for (int i = first + 1; i <= last && all.data != NULL; i++) {
        DT_ASSERT((unsigned char *)params[i].data ==
                  (unsigned char *)all.data + dt_tensor_bytes(&all));
        all.dim[0] += params[i].dim[0];
    }
    return all;
}

dt_linear dt_linear_of(const dt_block_call *block, int w_first, int w_last, int b_first, int b_last,
                       dt_linear_cut cut)
{
    dt_linear linear = {.w = linear_joined(block->w, w_first, w_last),
                        .b = linear_joined(block->w, b_first, b_last),
                        .cut = cut,
                        .terms = block->terms};

    if (block->adapters != NULL)
        linear.adapter = dt_adapter_of(block->adapters, block->model, block->layer, w_first, w_last,
                                       block->dw != NULL, block->dropout);
    linear.first = block->model->overwrites;
    if (block->dw != NULL) {
        linear.dw = linear_joined(block->dw, w_first, w_last);
        linear.db = linear_joined(block->dw, b_first, b_last);
    }
    return linear;
}

/* --- the products */

static dt_status multiply(dt_model *model, const dt_linear *linear, dt_tensor *y,
                          const dt_tensor *x, const dt_tensor *b, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(model->device->ops->matmul_forward(model->device, y, x, &linear->w, b, err));
    DT_TRY(dt_adapter_forward(model, &linear->adapter, y, x, err));
out:
    return st;
}

/* This rank's dx, or its term of it. */
static dt_status multiply_back(dt_model *model, const dt_linear *linear, dt_tensor *dx,
                               const dt_tensor *dy, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(model->device->ops->matmul_backward_input(model->device, dx, dy, &linear->w, err));
    DT_TRY(dt_adapter_backward_input(model, &linear->adapter, dx, err));
out:
    return st;
}

static dt_status add_gradients(dt_model *model, const dt_linear *linear, const dt_tensor *dy,
                               const dt_tensor *x, dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_tensor dw = linear->dw, db = linear->db;
    dt_status st = DT_OK;

    DT_TRY(dt_adapter_backward(model, &linear->adapter, dy, x, err));
    if (dw.data != NULL || db.data != NULL)
        DT_TRY((linear->first ? ops->matmul_first_weight
                              : ops->matmul_backward_weight)(model->device, &dw, &db, dy, x, err));
out:
    return st;
}

/* --- forward and backward */

dt_status dt_linear_forward(dt_model *model, const dt_linear *linear, dt_tensor *y,
                            const dt_tensor *x, dt_error *err)
{
    dt_tensor term, none = {0};
    dt_status st = DT_OK;

    if (linear->cut != DT_LINEAR_COLUMNS)
        return multiply(model, linear, y, x, &linear->b, err);
    term = dt_layer_term(model, y, linear->terms);
    DT_TRY(multiply(model, linear, &term, x, dt_layer_adds_once(model) ? &linear->b : &none, err));
    DT_TRY(dt_layer_sum(model, y, &term, err));
out:
    return st;
}

dt_status dt_linear_backward(dt_model *model, const dt_linear *linear, dt_tensor *dx,
                             const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    dt_tensor term;
    dt_status st = DT_OK;

    DT_TRY(add_gradients(model, linear, dy, x, err));
    if (dx == NULL)
        return DT_OK;
    if (linear->cut != DT_LINEAR_ROWS)
        return multiply_back(model, linear, dx, dy, err);
    term = dt_layer_term(model, dx, linear->terms);
    DT_TRY(multiply_back(model, linear, &term, dy, err));
    DT_TRY(dt_layer_sum(model, dx, &term, err));
out:
    return st;
}

/* --- with another op */

bool dt_linear_fuses_sum(const dt_model *model)
{
    return model->device->ops->matmul_residual_forward != NULL && model->peers == NULL &&
           model->config.lora.rank == 0;
}

dt_status dt_linear_forward_onto(dt_model *model, const dt_linear *linear, dt_tensor *y,
                                 const dt_tensor *onto, const dt_tensor *x, dt_error *err)
{
    DT_ASSERT(dt_linear_fuses_sum(model) && y->data != onto->data);
    return model->device->ops->matmul_residual_forward(model->device, y, onto, x, &linear->w,
                                                       &linear->b, err);
}

bool dt_linear_fuses_gelu(const dt_model *model)
{
    return model->device->ops->matmul_gelu_forward != NULL && model->config.lora.rank == 0;
}

dt_status dt_linear_forward_gelu(dt_model *model, const dt_linear *linear, dt_tensor *y,
                                 dt_tensor *pre, const dt_tensor *x, dt_error *err)
{
    DT_ASSERT(dt_linear_fuses_gelu(model) && linear->cut != DT_LINEAR_COLUMNS);
    return model->device->ops->matmul_gelu_forward(model->device, y, pre, x, &linear->w, &linear->b,
                                                   err);
}

dt_status dt_linear_backward_activated(dt_model *model, const dt_linear *linear, dt_tensor *dpre,
                                       const dt_tensor *dy, const dt_tensor *x,
                                       const dt_tensor *pre, dt_activation_kind activation,
                                       dt_error *err)
{
    const dt_ops *ops = model->device->ops;
    dt_status st = DT_OK;

    DT_ASSERT(linear->cut != DT_LINEAR_ROWS);
    DT_TRY(add_gradients(model, linear, dy, x, err));
    if (ops->matmul_gelu_backward != NULL && activation == DT_ACTIVATION_GELU_TANH &&
        linear->adapter.of == NULL)
        return ops->matmul_gelu_backward(model->device, dpre, dy, &linear->w, pre, err);
    DT_TRY(multiply_back(model, linear, dpre, dy, err));
    DT_TRY(ops->activation_backward(model->device, dpre, dpre, pre, activation, err));
out:
    return st;
}
