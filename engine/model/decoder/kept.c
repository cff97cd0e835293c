/* kept: stores the KV cache: each cached tensor is (layers * sequences, kept, columns), so the rows
 * of one sequence in one layer are contiguous. */
#include "engine/model/decoder/decoder.h"

int64_t dt_decoder_kept_room(const dt_model_config *config)
{
    return config->kept > 0 ? config->kept : config->decoder.context;
}

int64_t dt_decoder_sequences(const dt_model *model)
{
    return model->config.sequences > 0 ? model->config.sequences : 1;
}

dt_tensor dt_decoder_kept(const dt_model *model, int which, int64_t layer, int64_t sequence,
                          int64_t first, int64_t rows)
{
    const dt_decoder *state = model->state;
    const dt_tensor *kept = &state->lasting[which];
    int64_t row = (layer * dt_decoder_sequences(model) + sequence) * kept->dim[1] + first;
    unsigned char *start = kept->data;

    DT_ASSERT(first + rows <= kept->dim[1]);
    start += (size_t)(row * kept->dim[2]) * dt_dtype_bytes(kept->dtype);
    return dt_tensor_3d(start, kept->dtype, 1, rows, kept->dim[2]);
}

static dt_status copy(dt_model *model, void *to, void *from, int64_t elems, dt_error *err)
{
    dt_tensor out = dt_tensor_1d(to, model->config.dtype, elems);
    dt_tensor in = dt_tensor_1d(from, model->config.dtype, elems);

    return model->device->ops->cast(model->device, &out, &in, err);
}

dt_status dt_decoder_keep(dt_model *model, int which, int64_t layer, const dt_tensor *made,
                          int64_t first, dt_error *err)
{
    const dt_decoder *state = model->state;
    int64_t columns = state->lasting[which].dim[2], all = made->dim[2];
    dt_status st = DT_OK;

    DT_ASSERT(state->growth.each && made->dim[1] == 1 && first + columns <= all);
    for (int64_t k = 0; k < made->dim[0]; k++) {
        dt_tensor to = dt_decoder_kept(model, which, layer, k, state->growth.tokens[k], 1);

        DT_TRY(copy(model, to.data,
                    (unsigned char *)made->data +
                        (size_t)(k * all + first) * dt_dtype_bytes(made->dtype),
                    columns, err));
    }
out:
    return st;
}

dt_heads dt_decoder_kept_heads(const dt_model *model, int which, int64_t layer, int64_t first,
                               int64_t heads, int64_t width)
{
    const dt_decoder *state = model->state;
    dt_tensor all = dt_decoder_kept(model, which, layer, 0, 0, 1);
    dt_heads h;

    all.dim[0] = state->B;
    all.dim[1] = state->lasting[which].dim[1];
    h = dt_heads_of(&all, first, heads, width);
    h.rows = state->growth.longest;
    return h;
}

dt_status dt_decoder_replace(dt_model *model, int64_t to, int64_t from, dt_error *err)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    dt_decoder *state = model->state;
    int64_t *tokens = state->growth.tokens, count = from == DT_SEQUENCE_EMPTY ? 0 : tokens[from];
    dt_status st = DT_OK;

    tokens[to] = 0;
    for (int which = parts->kept_first; count > 0 && to != from && which < parts->kept_end; which++)
        for (int64_t layer = 0; layer < model->config.decoder.layers; layer++) {
            dt_tensor out = dt_decoder_kept(model, which, layer, to, 0, count);
            dt_tensor in = dt_decoder_kept(model, which, layer, from, 0, count);

            DT_TRY(copy(model, out.data, in.data, dt_tensor_elems(&in), err));
        }
    tokens[to] = count;
out:
    return st;
}

int64_t dt_decoder_extended(const dt_model *model, int64_t sequence)
{
    const dt_decoder *state = model->state;

    return state->growth.tokens[sequence];
}
