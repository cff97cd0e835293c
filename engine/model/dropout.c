/* dropout: makes the Philox key of a layer's dropout mask. */
#include "engine/model/kind.h"

dt_philox_key dt_model_dropout_key(const dt_batch *batch, int layer, dt_philox_op op)
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
