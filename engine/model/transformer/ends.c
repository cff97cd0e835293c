/* ends: both ends of a side: embedding, final norm, and the decoder's logits and loss. */
#include <math.h>

#include "engine/model/transformer/model_int.h"
#include "engine/model/vocabulary.h"
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

/* Indices of a side's parameters in the root, and its vocabulary. */
typedef struct end_params {
    int embed, positions, norm_w, norm_b;
    int64_t vocab;
} end_params;

static end_params params_of(const dt_model *model, const dt_transformer_side *side)
{
    bool own = !model->config.transformer.shared_embeddings;

    if (side->decoder)
        return (end_params){DT_TRANSFORMER_EMBED, DT_TRANSFORMER_POSITIONS,
                            DT_TRANSFORMER_DECODER_NORM_W, DT_TRANSFORMER_DECODER_NORM_B,
                            model->config.decoder.vocab};
    return (end_params){own ? DT_TRANSFORMER_SOURCE_EMBED : DT_TRANSFORMER_EMBED,
                        DT_TRANSFORMER_SOURCE_POSITIONS, DT_TRANSFORMER_ENCODER_NORM_W,
                        DT_TRANSFORMER_ENCODER_NORM_B, model->config.transformer.source_vocab};
}

static double embedding_scale(const dt_model *model)
{
    return model->config.transformer.scale_embedding ? sqrt((double)model->config.decoder.embed)
                                                     : 1;
}

/* The table of positions. */
static dt_tensor positions_of(const dt_model *model, int param)
{
    const dt_transformer_state *state = model->state;

    return model->config.transformer.positions == DT_POSITIONS_SINUSOIDAL
               ? state->positions
               : dt_transformer_weight(model, 0, param);
}

dt_status dt_transformer_embed(dt_model *model, dt_transformer_side *side, const dt_tensor *tokens,
                               const dt_batch *dropout, dt_error *err)
{
    end_params which = params_of(model, side);
    dt_tensor words = dt_transformer_weight(model, 0, which.embed);
    dt_tensor positions = positions_of(model, which.positions);
    const dt_transformer_state *state = model->state;
    dt_tensor *y = &side->stream[0];
    dt_status st = DT_OK;

    DT_TRY(dt_layer_embed(model, y, tokens, &words, &positions, embedding_scale(model), which.vocab,
                          &state->terms, err));
    if (dt_transformer_drops(model, dropout))
        DT_TRY(dt_transformer_drop(model, y, y, dropout, side->first_layer,
                                   DT_PHILOX_DROPOUT_EMBEDDING, false, err));
out:
    return st;
}

/* Gathers the positions of all rows first; then they serve as the position table of one sequence
 * with as many tokens. */
dt_status dt_transformer_embed_each(dt_model *model, const dt_tensor *tokens, dt_error *err)
{
    const dt_transformer_state *state = model->state;
    const dt_transformer_side *side = &state->decoder;
    end_params which = params_of(model, side);
    const dt_ops *ops = model->device->ops;
    dt_tensor words = dt_transformer_weight(model, 0, which.embed), none = {0};
    dt_tensor table = positions_of(model, which.positions);
    int64_t rows = tokens->dim[0], C = model->config.decoder.embed;
    dt_tensor line = dt_tensor_2d(tokens->data, DT_I32, 1, rows), y = side->stream[0];
    dt_tensor positions = dt_tensor_2d(state->narrow, model->config.dtype, rows, C);
    dt_status st = DT_OK;

    DT_TRY(ops->embedding_forward(model->device, &positions, &state->growth.places, &table, &none,
                                  1, NULL, err));
    DT_TRY(dt_layer_embed(model, &y, &line, &words, &positions, embedding_scale(model), which.vocab,
                          &state->terms, err));
out:
    return st;
}

dt_status dt_transformer_embed_backward(dt_model *model, dt_transformer_side *side,
                                        const dt_tensor *tokens, const dt_batch *dropout,
                                        dt_error *err)
{
    const dt_transformer_state *state = model->state;
    end_params which = params_of(model, side);
    dt_tensor dwords = dt_transformer_grad(model, 0, which.embed);
    dt_tensor dpositions = dt_transformer_grad(model, 0, which.positions);
    dt_tensor d = dt_transformer_dstream(model, side), dropped = d;
    dt_status st = DT_OK;

    if (dt_transformer_drops(model, dropout)) {
        dropped = dt_transformer_scratch(model, side, state->narrow, model->config.decoder.embed);
        DT_TRY(dt_transformer_drop(model, &dropped, &d, dropout, side->first_layer,
                                   DT_PHILOX_DROPOUT_EMBEDDING, true, err));
    }
    DT_TRY(dt_layer_embed_backward(model, &dwords, &dpositions, &dropped, tokens,
                                   embedding_scale(model), which.vocab, err));
out:
    return st;
}

dt_status dt_transformer_norm_end(dt_model *model, dt_transformer_side *side, dt_error *err)
{
    end_params which = params_of(model, side);
    dt_tensor w = dt_transformer_weight(model, 0, which.norm_w);
    dt_tensor b = dt_transformer_weight(model, 0, which.norm_b);

    if (!dt_transformer_is_pre(model))
        return DT_OK;
    return model->device->ops->layernorm_forward(model->device, &side->norm, &side->norm_mean,
                                                 &side->norm_rstd, &side->stream[side->layers], &w,
                                                 &b, DT_TRANSFORMER_NORM_EPS, err);
}

dt_status dt_transformer_norm_end_backward(dt_model *model, dt_transformer_side *side,
                                           const dt_tensor *dy, dt_error *err)
{
    end_params which = params_of(model, side);
    const dt_ops *ops = model->device->ops;
    dt_status st = DT_OK;
    dt_tensor w, dw, db, d;

    if (!dt_transformer_is_pre(model))
        return DT_OK; /* post-norm: the gradient is already that of the stream */
    w = dt_transformer_weight(model, 0, which.norm_w);
    dw = dt_transformer_grad(model, 0, which.norm_w);
    db = dt_transformer_grad(model, 0, which.norm_b);
    d = dt_transformer_dstream(model, side);
    DT_TRY(ops->zero(model->device, &d, err));
    DT_TRY(ops->layernorm_backward(model->device, &d, &dw, &db, dy, &side->stream[side->layers],
                                   &side->norm_mean, &side->norm_rstd, &w, err));
out:
    return st;
}
