#include "engine/model/transformer/model_int.h"

/* Set up the call for a block. layer: counted over encoder and decoder. */
static void call_of(dt_transformer_call *c, dt_model *model, int layer, bool backward,
                    const dt_batch *dropout)
{
    dt_transformer_state *state = model->state;
    bool decoder = layer >= state->decoder.first_layer;

    c->model = model;
    c->side = decoder ? &state->decoder : &state->encoder;
    c->layer = layer - c->side->first_layer;
    c->block = &c->side->blocks[c->layer];
    c->dropout = dropout;
    c->backward = backward;
    for (int i = 0; i < DT_TRANSFORMER_BLOCK_PARAMS; i++) {
        c->w[i] = dt_transformer_weight(model, layer + 1, i);
        if (backward)
            c->dw[i] = dt_transformer_grad(model, layer + 1, i);
    }
}

static bool has(const dt_transformer_call *c, int which)
{
    return which != DT_TRANSFORMER_CROSS || c->side->decoder;
}

static dt_status forward(dt_transformer_call *c, bool again, dt_error *err)
{
    dt_status st = DT_OK;

    for (int which = 0; which < DT_TRANSFORMER_BRANCHES; which++)
        if (has(c, which))
            DT_TRY(dt_transformer_sublayer_forward(c, (dt_transformer_branch)which, again, err));
out:
    return st;
}

dt_status dt_transformer_block_forward(dt_model *model, int layer, const dt_batch *dropout,
                                       dt_error *err)
{
    dt_transformer_call c;

    call_of(&c, model, layer, false, dropout);
    return forward(&c, false, err);
}

dt_tensor dt_transformer_dstream(const dt_model *model, const dt_transformer_side *side)
{
    const dt_transformer_state *state = model->state;

    if (!side->decoder && !dt_transformer_is_pre(model))
        return state->dencoded;
    return dt_transformer_scratch(model, side, state->dstream, model->config.decoder.embed);
}

dt_status dt_transformer_block_backward(dt_model *model, int layer, const dt_batch *dropout,
                                        dt_error *err)
{
    const dt_transformer_state *state = model->state;
    int last = state->decoder.first_layer + state->decoder.layers - 1;
    dt_transformer_call c;
    dt_status st = DT_OK;
    dt_tensor d;

    call_of(&c, model, layer, true, dropout);
    d = dt_transformer_dstream(model, c.side);
    if (model->config.recompute == DT_RECOMPUTE_FULL && layer < last)
        DT_TRY(forward(&c, true, err));
    for (int which = DT_TRANSFORMER_BRANCHES - 1; which >= 0; which--)
        if (has(&c, which))
            DT_TRY(dt_transformer_sublayer_backward(&c, (dt_transformer_branch)which, &d, err));
out:
    return st;
}
