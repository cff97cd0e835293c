/* dropout: where a pass drops elements, and by which numbers. */
#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

dt_philox_key dt_gpt2_dropout_key(const dt_batch *batch, int layer, dt_philox_op op)
{
    dt_philox_key key = {.seed = batch->seed,
                         .step = batch->step,
                         .micro_step = batch->micro_step,
                         .data_rank = batch->data_rank,
                         .layer = (uint32_t)layer,
                         .op = op,
                         .clock = batch->clock};
    return key;
}

bool dt_gpt2_drops(const dt_model *model, const dt_batch *dropout)
{
    return dropout && model->config.gpt2.dropout > 0;
}
