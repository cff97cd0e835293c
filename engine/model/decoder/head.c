#include "engine/model/embedding.h"
#include "engine/model/decoder/decoder.h"
#include "engine/model/token_head.h"
#include "recipes/architecture/decoder.h"

static dt_token_head head_of(dt_model *model)
{
    const dt_decoder *state = model->state;

    return (dt_token_head){
        .model = model,
        .vocab = model->config.decoder.vocab,
        .vocab_padded = dt_decoder_vocab_rows(&model->config),
        .logits = state->logits,
        .chunk_rows = state->logits_rows,
        .x = state->norm,
        .linear = {.w = dt_decoder_weight(model, 0, dt_decoder_head_param(model))},
        .losses = state->losses,
        .part = dt_layer_vocab(model, dt_decoder_vocab_rows(&model->config),
                               model->config.decoder.vocab),
        .own = state->part_own,
        .all = state->part_all};
}

dt_status dt_decoder_head_train(dt_model *model, const dt_tensor *x, const dt_tensor *targets,
                                const double *loss_scale, dt_error *err)
{
    dt_device *device = model->device;
    dt_decoder *state = model->state;
    dt_token_head head = head_of(model);
    dt_tensor term = dt_layer_term(model, &state->dnarrow, &state->terms);
    dt_status st = DT_OK;

    head.linear.dw = dt_decoder_grad(model, 0, dt_decoder_head_param(model));
    DT_TRY(dt_token_head_train(&head, &term, targets, loss_scale, err));
    DT_TRY(dt_layer_sum(model, &state->dnarrow, &term, err));
    /* zero it, because the norm's backward adds to it */
    DT_TRY(device->ops->zero(device, &state->dstream, err));
    DT_TRY(model->kind->decoder->norm_backward(model, x, err));
out:
    return st;
}

dt_status dt_decoder_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_token_head head = head_of(model);

    return dt_token_head_evaluate(&head, targets, err);
}

dt_status dt_decoder_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err)
{
    const dt_decoder *state = model->state;
    dt_token_head head = head_of(model);

    return dt_token_head_logits(&head, state->B, last, logits, err);
}
