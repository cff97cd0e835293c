#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

/* The logits of a batch are its largest tensor by far (B T Vp), so they never stand whole: the
 * head runs over chunks of rows. The scale of the loss is known before the pass, so a chunk's
 * gradients are done while its logits are there. */

/* Rows first .. first+count of a tensor, as (count, cols); 1-D: elements. */
static dt_tensor slice(const dt_tensor *tensor, int64_t first, int64_t count)
{
    int64_t cols = tensor->ndim > 1 ? dt_tensor_cols(tensor) : 1;
    unsigned char *data = tensor->data;

    data += (size_t)(first * cols) * dt_dtype_bytes(tensor->dtype);
    if (tensor->ndim == 1)
        return dt_tensor_1d(data, tensor->dtype, count);
    return dt_tensor_2d(data, tensor->dtype, count, cols);
}

static int64_t chunk_count(const dt_gpt2_state *state, int64_t first, int64_t end)
{
    return end - first < state->logits_rows ? end - first : state->logits_rows;
}

dt_status dt_gpt2_head_norm(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    dt_tensor w = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor b = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_B);

    return model->device->ops->layernorm_forward(model->device, &state->ln_f, &state->ln_f_mean,
                                                 &state->ln_f_rstd, x, &w, &b, DT_GPT2_NORM_EPS,
                                                 err);
}

dt_status dt_gpt2_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                             double loss_scale, dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    const dt_model_config *config = &model->config;
    dt_gpt2_state *state = model->state;
    dt_tensor head = dt_gpt2_weight(model, 0, dt_gpt2_head_param(model));
    dt_tensor dhead = dt_gpt2_grad(model, 0, dt_gpt2_head_param(model));
    dt_tensor w = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor dw = dt_gpt2_grad(model, 0, DT_GPT2_LN_F_W);
    dt_tensor db = dt_gpt2_grad(model, 0, DT_GPT2_LN_F_B);
    dt_tensor all_targets = dt_tensor_1d(targets->data, DT_I32, dt_tensor_elems(targets));
    dt_tensor no_bias = {0};
    int64_t rows = state->B * state->T, count;
    dt_status st = DT_OK;

    for (int64_t first = 0; first < rows; first += count) {
        dt_tensor logits, losses, target, ln_f, dln_f;

        count = chunk_count(state, first, rows);
        logits = dt_tensor_2d(state->logits, config->dtype, count, config->gpt2.vocab_padded);
        losses = slice(&state->losses, first, count);
        target = slice(&all_targets, first, count);
        ln_f = slice(&state->ln_f, first, count);
        dln_f = slice(&state->dnarrow, first, count);
        DT_TRY(ops->matmul_forward(device, &logits, &ln_f, &head, &no_bias, err));
        DT_TRY(ops->cross_entropy_backward(device, &losses, &logits, &target, config->gpt2.vocab,
                                           loss_scale, err));
        DT_TRY(ops->matmul_backward_weight(device, &dhead, &no_bias, &logits, &ln_f, err));
        DT_TRY(ops->matmul_backward_input(device, &dln_f, &logits, &head, err));
    }
    DT_TRY(ops->zero(device, &state->dstream, err)); /* the norm's backward adds to it */
    DT_TRY(ops->layernorm_backward(device, &state->dstream, &dw, &db, &state->dnarrow, x,
                                   &state->ln_f_mean, &state->ln_f_rstd, &w, err));
out:
    return st;
}

dt_status dt_gpt2_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_device *device = model->device;
    const dt_model_config *config = &model->config;
    dt_gpt2_state *state = model->state;
    dt_tensor head = dt_gpt2_weight(model, 0, dt_gpt2_head_param(model));
    dt_tensor all_targets = dt_tensor_1d(targets->data, DT_I32, dt_tensor_elems(targets));
    dt_tensor no_bias = {0};
    int64_t rows = state->B * state->T, count;
    dt_status st = DT_OK;

    for (int64_t first = 0; first < rows; first += count) {
        dt_tensor logits, losses, target, ln_f;

        count = chunk_count(state, first, rows);
        logits = dt_tensor_2d(state->logits, DT_F32, count, config->gpt2.vocab_padded);
        losses = slice(&state->losses, first, count);
        target = slice(&all_targets, first, count);
        ln_f = slice(&state->ln_f, first, count);
        DT_TRY(device->ops->matmul_forward(device, &logits, &ln_f, &head, &no_bias, err));
        DT_TRY(device->ops->cross_entropy_forward(device, &losses, &logits, &target,
                                                  config->gpt2.vocab, err));
    }
out:
    return st;
}

dt_status dt_gpt2_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err)
{
    dt_device *device = model->device;
    const dt_model_config *config = &model->config;
    dt_gpt2_state *state = model->state;
    dt_tensor head = dt_gpt2_weight(model, 0, dt_gpt2_head_param(model));
    dt_tensor no_bias = {0};
    int64_t count;
    dt_status st = DT_OK;

    for (int64_t b = 0; b < state->B; b++) {
        int64_t end = (b + 1) * state->T;

        for (int64_t first = end - last; first < end; first += count) {
            dt_tensor chunk, ln_f;

            count = chunk_count(state, first, end);
            chunk = dt_tensor_2d(state->logits, DT_F32, count, config->gpt2.vocab_padded);
            ln_f = slice(&state->ln_f, first, count);
            DT_TRY(device->ops->matmul_forward(device, &chunk, &ln_f, &head, &no_bias, err));
            for (int64_t i = 0; i < count; i++, logits += config->gpt2.vocab) {
                dt_tensor row = slice(&chunk, i, 1);

                DT_TRY(device->copy_out(device, logits, row.data,
                                        (size_t)config->gpt2.vocab * sizeof(float), err));
            }
        }
    }
out:
    return st;
}
