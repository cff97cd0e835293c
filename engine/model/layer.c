/* layer: sums over the ranks that divide a layer. */
#include "engine/model/kind.h"
#include "engine/ops/ops.h"

#include "base/banned.h"

dt_tensor dt_layer_term(const dt_model *model, const dt_tensor *y, const dt_tensor *terms)
{
    dt_tensor term = *y;

    if (model->peers == NULL || y->dtype == DT_F32)
        return term;
    term.dtype = DT_F32;
    term.data = terms->data;
    return term;
}

dt_status dt_layer_sum(dt_model *model, dt_tensor *y, const dt_tensor *term, dt_error *err)
{
    dt_status st = DT_OK;

    if (model->peers == NULL)
        return DT_OK;
    DT_TRY(model->peers->sum(model->peers->self, term, err));
    if (term->data != y->data)
        DT_TRY(model->device->ops->cast(model->device, y, term, err));
out:
    return st;
}

bool dt_layer_adds_once(const dt_model *model)
{
    return model->peers == NULL || model->config.tensor.rank == 0;
}

dt_vocab_part dt_layer_vocab(const dt_model *model)
{
    const dt_decoder_config *config = &model->config.decoder;
    int64_t rows = config->vocab_padded / dt_tensor_ranks(&model->config.tensor);
    dt_vocab_part part = {.first = rows * model->config.tensor.rank, .all = config->vocab};

    part.count = part.all - part.first;
    if (part.count > rows)
        part.count = rows;
    if (part.count < 0)
        part.count = 0;
    return part;
}
