#include "engine/config.h"

#include <string.h>

#include "base/banned.h"

dt_status dt_config_train(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                          dt_error *err)
{
    int64_t wanted = recipe->model.vocab > 0 ? recipe->model.vocab : vocab;

    memset(out, 0, sizeof(*out));
    if (vocab > wanted)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the data have %lld different tokens, 'model.vocab' is %lld (raise it, or "
                       "leave it out)",
                       (long long)vocab, (long long)wanted);
    *out = (dt_model_config){
        .layers = recipe->model.layers,
        .heads = recipe->model.heads,
        .embed = recipe->model.embed,
        .vocab = wanted,
        .vocab_padded = (wanted + DT_VOCAB_MULTIPLE - 1) / DT_VOCAB_MULTIPLE * DT_VOCAB_MULTIPLE,
        .context = recipe->batch.tokens,
        .batch = recipe->batch.sequences,
        .tokens = recipe->batch.tokens,
        .dropout = recipe->model.dropout,
        .dtype = recipe->precision.kind == DT_PRECISION_BF16 ? DT_BF16 : DT_F32,
    };
    return DT_OK;
}

dt_status dt_config_inference(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                              dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_config_train(out, recipe, vocab, err));
    out->batch = 1;
    out->dropout = 0;
    out->dtype = DT_F32;
    out->inference = true;
out:
    return st;
}
