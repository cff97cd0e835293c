#include "engine/model/embedding.h"
#include "engine/ops/ops.h"

dt_status dt_layer_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                         const dt_tensor *words, const dt_tensor *positions, double scale,
                         int64_t vocab, const dt_tensor *terms, dt_error *err)
{
    dt_vocab_part part = dt_layer_vocab(model, words->dim[0], vocab);
    dt_tensor term = dt_layer_term(model, y, terms), none = {0};
    const dt_tensor *added = dt_layer_adds_once(model) ? positions : &none;
    dt_status st = DT_OK;

    DT_TRY(model->device->ops->embedding_forward(model->device, &term, tokens, words, added, scale,
                                                 model->peers != NULL ? &part : NULL, err));
    DT_TRY(dt_layer_sum(model, y, &term, err));
out:
    return st;
}

dt_status dt_layer_embed_backward(dt_model *model, dt_tensor *dwords, dt_tensor *dpositions,
                                  const dt_tensor *dy, const dt_tensor *tokens, double scale,
                                  int64_t vocab, dt_error *err)
{
    dt_vocab_part part = dt_layer_vocab(model, dwords->dim[0], vocab);

    if (dwords->data == NULL && dpositions->data == NULL)
        return DT_OK;
    return model->device->ops->embedding_backward(model->device, dwords, dpositions, dy, tokens,
                                                  scale, model->peers != NULL ? &part : NULL, err);
}

dt_vocab_part dt_layer_vocab(const dt_model *model, int64_t rows, int64_t vocab)
{
    dt_vocab_part part = {.first = rows * model->config.tensor.rank, .all = vocab};

    part.count = part.all - part.first;
    if (part.count > rows)
        part.count = rows;
    if (part.count < 0)
        part.count = 0;
    return part;
}
