#include "engine/config.h"

#include <string.h>

#include "base/banned.h"

static dt_dtype compute_type(dt_precision_kind kind)
{
    static const dt_dtype types[] = {
        [DT_PRECISION_FP32] = DT_F32,
        [DT_PRECISION_BF16] = DT_BF16,
        [DT_PRECISION_FP16] = DT_F16,
    };

    return types[kind];
}

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
        .attention_dropout = recipe->model.attention_dropout,
        .activation = recipe->model.activation,
        .positions = recipe->model.positions,
        .scale_embedding = recipe->model.scale_embedding,
        .own_lm_head = !recipe->model.tied,
        .recompute = recipe->activation_checkpointing,
        .dtype = compute_type(recipe->precision.kind),
    };
    return DT_OK;
}

dt_status dt_config_inference(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                              dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_config_train(out, recipe, vocab, err));
    out->batch = 1;
    out->dropout = out->attention_dropout = 0;
    out->dtype = DT_F32;
    out->inference = true;
out:
    return st;
}

dt_strategy_options dt_config_strategy(const dt_recipe *recipe, int64_t replicas)
{
    return (dt_strategy_options){
        .bucket_mb = recipe->strategy.bucket_mb,
        .first_bucket_mb = recipe->strategy.first_bucket_mb,
        .shard = recipe->strategy.shard,
        .reshard_after_forward = recipe->strategy.reshard_after_forward,
        .reduce_each_micro_step = recipe->strategy.reduce_each_micro_step,
        .reduce_dtype = recipe->strategy.reduce_dtype,
        .optimizer = recipe->optimizer,
        .replicas = replicas,
        .graphs = recipe->cuda_graphs,
    };
}
