#include "engine/model/embedding.h"
#include "engine/model/llama/model_int.h"

extern const dt_model_kind dt_llama_kind;

static dt_status embed_forward(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                               dt_error *err)
{
    dt_tensor weight = dt_decoder_weight(model, 0, DT_LLAMA_EMBED), no_positions = {0};
    const dt_decoder *state = model->state;
    dt_status st = DT_OK;

    if (state->growth.each)
        DT_TRY(dt_llama_angles_gather(model, err));
    DT_TRY(dt_decoder_embed(model, y, tokens, &weight, &no_positions, 1, err));
out:
    return st;
}

static dt_status embed_backward(dt_model *model, const dt_tensor *dy, const dt_tensor *tokens,
                                dt_error *err)
{
    dt_tensor dweight = dt_decoder_grad(model, 0, DT_LLAMA_EMBED), no_positions = {0};

    return dt_layer_embed_backward(model, &dweight, &no_positions, dy, tokens, 1,
                                   model->config.decoder.vocab, err);
}

static dt_status norm_forward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w = dt_decoder_weight(model, 0, DT_LLAMA_NORM);

    return model->device->ops->rmsnorm_forward(model->device, &state->norm, &state->norm_rstd, x,
                                               &w, model->config.llama.norm_eps, err);
}

static dt_status norm_backward(dt_model *model, const dt_tensor *x, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_tensor w = dt_decoder_weight(model, 0, DT_LLAMA_NORM);
    dt_tensor dw = dt_decoder_grad(model, 0, DT_LLAMA_NORM);

    return model->device->ops->rmsnorm_backward(model->device, &state->dstream, &dw,
                                                &state->dnarrow, x, &state->norm_rstd, &w, err);
}

static const dt_decoder_parts parts = {
    .block_params = DT_LLAMA_BLOCK_PARAMS,
    .block_bytes = sizeof(dt_llama_block),
    .embedding_param = DT_LLAMA_EMBED,
    .head_param = DT_LLAMA_HEAD,
    .kept_first = DT_LLAMA_KEPT_KEYS,
    .kept_end = DT_LLAMA_KEPT_VALUES + 1,
    .lacks = dt_llama_lacks,
    .take_own = dt_llama_take_own,
    .take_scratch = dt_llama_take_scratch,
    .take_norms = dt_llama_take_norms,
    .share_norms = dt_llama_share_norms,
    .take_products = dt_llama_take_products,
    .gradient_columns = dt_llama_q_width,
    .lay_out_behind = dt_llama_lay_out_behind,
    .fill_tables = dt_llama_angles_fill,
    .embed_forward = embed_forward,
    .embed_backward = embed_backward,
    .block_forward = dt_llama_block_forward,
    .block_products = dt_llama_block_products,
    .block_backward = dt_llama_block_backward,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
};

const dt_model_kind dt_llama_kind = {&dt_decoder_passes, &parts};
