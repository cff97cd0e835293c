#include "engine/config.h"

dt_status dt_config_train(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                          dt_error *err)
{
    int64_t wanted = recipe->model.vocab;

    if (wanted > 0 && vocab > wanted)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the data have %lld different tokens, 'model.vocab' is %lld (raise it, or "
                       "leave it out)",
                       (long long)vocab, (long long)wanted);
    dt_model_config_make(out, recipe, vocab);
    return DT_OK;
}

dt_status dt_config_inference(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                              dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_config_train(out, recipe, vocab, err));
    out->batch = 1;
    out->dtype = DT_F32;
    out->inference = true;
    out->tensor = (dt_tensor_place){0}; /* one process has whole layers */
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
