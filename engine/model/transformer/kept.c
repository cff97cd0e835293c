/* kept: what a translation keeps: keys and values of its tokens, a version's one behind another; those of
 * the source once for all versions. */
#include "engine/model/transformer/model_int.h"

#include "base/banned.h"

void *dt_transformer_kept_at(const dt_model *model, int which, int64_t layer, int64_t version,
                             int64_t at)
{
    const dt_transformer_state *state = model->state;
    const dt_tensor *kept = &state->growth.kept[which];
    int64_t context = model->config.decoder.context;
    int64_t row = (layer * model->config.batch + version) * context + at;

    return (unsigned char *)kept->data + (size_t)(row * kept->dim[1]) * dt_dtype_bytes(kept->dtype);
}

dt_status dt_transformer_copy_kept(dt_model *model, void *to, void *from, int64_t elems,
                                   dt_error *err)
{
    dt_tensor out = dt_tensor_1d(to, model->config.dtype, elems);
    dt_tensor in = dt_tensor_1d(from, model->config.dtype, elems);

    return model->device->ops->cast(model->device, &out, &in, err);
}

dt_status dt_transformer_grow(dt_transformer_call *c, dt_qkv *views, dt_error *err)
{
    const dt_transformer_state *state = c->model->state;
    const dt_transformer_growth *growth = &state->growth;
    int64_t C = c->model->config.decoder.embed, heads = c->model->config.decoder.heads;
    int64_t context = c->model->config.decoder.context;
    dt_tensor *qkv = &c->block->qkv;
    size_t elem = dt_dtype_bytes(qkv->dtype);
    dt_tensor all = dt_tensor_3d(dt_transformer_kept_at(c->model, growth->now, c->layer, 0, 0),
                                 qkv->dtype, qkv->dim[0], context, 2 * C);
    dt_status st = DT_OK;

    for (int64_t k = 0; k < qkv->dim[0]; k++)
        DT_TRY(dt_transformer_copy_kept(
            c->model, dt_transformer_kept_at(c->model, growth->now, c->layer, k, growth->tokens),
            (unsigned char *)qkv->data + (size_t)(k * 3 * C + C) * elem, 2 * C, err));
    views->k = dt_heads_of(&all, 0, heads, C / heads);
    views->v = dt_heads_of(&all, C, heads, C / heads);
    views->k.rows = views->v.rows = growth->tokens + 1;
out:
    return st;
}

dt_tensor dt_transformer_kept_source(const dt_model *model, int layer)
{
    const dt_transformer_state *state = model->state;
    const dt_tensor *encoded = &state->growth.encoded;
    size_t bytes = (size_t)(encoded->dim[1] * encoded->dim[2]) * dt_dtype_bytes(encoded->dtype);

    return dt_tensor_3d((unsigned char *)encoded->data + (size_t)layer * bytes, encoded->dtype, 1,
                        state->growth.source, encoded->dim[2]);
}

/* Every version looks at the same rows. */
void dt_transformer_view_source(const dt_transformer_call *c, dt_qkv *views)
{
    int64_t C = c->model->config.decoder.embed, heads = c->model->config.decoder.heads;
    dt_tensor kv = dt_transformer_kept_source(c->model, c->layer);

    views->k = dt_heads_of(&kv, 0, heads, C / heads);
    views->v = dt_heads_of(&kv, C, heads, C / heads);
    views->k.batch = views->v.batch = views->q.batch;
    views->k.sequence_stride = views->v.sequence_stride = 0;
}
