#include "engine/model/embedding.h"
#include "engine/model/token_head.h"
#include "engine/model/transformer/model_int.h"
#include "recipes/architecture/decoder.h"

static int head_param(const dt_model *model)
{
    return model->config.decoder.own_lm_head ? DT_TRANSFORMER_HEAD : DT_TRANSFORMER_EMBED;
}

static dt_token_head head_of(dt_model *model)
{
    const dt_transformer_state *state = model->state;

    return (dt_token_head){.model = model,
                           .vocab = model->config.decoder.vocab,
                           .vocab_padded = dt_decoder_vocab_rows(&model->config),
                           .logits = state->logits,
                           .chunk_rows = state->logits_rows,
                           .x = *dt_transformer_end_of(model, &state->decoder),
                           .linear = {.w = dt_transformer_weight(model, 0, head_param(model))},
                           .losses = state->losses,
                           .smoothing = model->config.transformer.label_smoothing,
                           .part = dt_layer_vocab(model, dt_decoder_vocab_rows(&model->config),
                                                  model->config.decoder.vocab),
                           .own = state->part_own,
                           .all = state->part_all,
                           .gathered = state->growth.logits};
}

dt_status dt_transformer_head_train(dt_model *model, const dt_tensor *targets,
                                    const double *loss_scale, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    dt_token_head head = head_of(model);
    void *to = dt_transformer_is_pre(model) ? state->dread : state->dstream;
    dt_tensor dx = dt_transformer_scratch(model, &state->decoder, to, model->config.decoder.embed);
    dt_tensor term = dt_layer_term(model, &dx, &state->terms);
    dt_status st = DT_OK;

    head.linear.dw = dt_transformer_grad(model, 0, head_param(model));
    DT_TRY(dt_token_head_train(&head, &term, targets, loss_scale, err));
    DT_TRY(dt_layer_sum(model, &dx, &term, err));
out:
    return st;
}

dt_status dt_transformer_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_token_head head = head_of(model);

    return dt_token_head_evaluate(&head, targets, err);
}

dt_status dt_transformer_head_logits(dt_model *model, int64_t last, float *logits, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    dt_token_head head = head_of(model);

    return dt_token_head_logits(&head, state->decoder.B, last, logits, err);
}
