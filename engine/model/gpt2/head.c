#include "engine/model/gpt2/model_int.h"
#include "engine/model/token_head.h"

#include "base/banned.h"

dt_status dt_gpt2_head_norm(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_gpt2_state *state = model->state;
    dt_tensor w = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor b = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_B);

    return model->device->ops->layernorm_forward(model->device, &state->ln_f, &state->ln_f_mean,
                                                 &state->ln_f_rstd, x, &w, &b, DT_GPT2_NORM_EPS,
                                                 err);
}

static dt_token_head head_of(const dt_model *model)
{
    const dt_gpt2_state *state = model->state;

    return (dt_token_head){.device = model->device,
                           .vocab = model->config.gpt2.vocab,
                           .vocab_padded = model->config.gpt2.vocab_padded,
                           .logits = state->logits,
                           .chunk_rows = state->logits_rows,
                           .x = state->ln_f,
                           .weight = dt_gpt2_weight(model, 0, dt_gpt2_head_param(model)),
                           .losses = state->losses};
}

dt_status dt_gpt2_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                             double loss_scale, dt_error *err)
{
    dt_device *device = model->device;
    dt_gpt2_state *state = model->state;
    dt_token_head head = head_of(model);
    dt_tensor dhead = dt_gpt2_grad(model, 0, dt_gpt2_head_param(model));
    dt_tensor w = dt_gpt2_weight(model, 0, DT_GPT2_LN_F_W);
    dt_tensor dw = dt_gpt2_grad(model, 0, DT_GPT2_LN_F_W);
    dt_tensor db = dt_gpt2_grad(model, 0, DT_GPT2_LN_F_B);
    dt_status st = DT_OK;

    DT_TRY(dt_token_head_train(&head, &state->dnarrow, &dhead, targets, loss_scale, err));
    DT_TRY(device->ops->zero(device, &state->dstream, err)); /* the norm's backward adds to it */
    DT_TRY(device->ops->layernorm_backward(device, &state->dstream, &dw, &db, &state->dnarrow, x,
                                           &state->ln_f_mean, &state->ln_f_rstd, &w, err));
out:
    return st;
}

dt_status dt_gpt2_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_token_head head = head_of(model);

    return dt_token_head_evaluate(&head, targets, err);
}

dt_status dt_gpt2_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err)
{
    const dt_gpt2_state *state = model->state;
    dt_token_head head = head_of(model);

    return dt_token_head_logits(&head, state->B, last, logits, err);
}
