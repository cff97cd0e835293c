#include "engine/strategy/replica.h"

#include <string.h>

#include "base/banned.h"

dt_status dt_replica_open(dt_replica *out, dt_model *model, dt_error *err)
{
    size_t bytes = (size_t)(model->config.batch * model->config.tokens) * sizeof(int32_t);
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    DT_TRY(dt_device_arena_open(&out->memory, model->device, 2 * bytes + 128, err));
    out->batch.tokens.data = dt_device_arena_take(&out->memory, bytes);
    out->batch.targets.data = dt_device_arena_take(&out->memory, bytes);
out:
    return st;
}

void dt_replica_close(dt_replica *replica)
{
    dt_device_arena_close(&replica->memory);
    memset(replica, 0, sizeof(*replica));
}

static dt_status load(dt_replica *replica, const dt_micro_batch *from, int64_t part, int64_t parts,
                      dt_error *err)
{
    dt_device *device = replica->model->device;
    dt_batch *batch = &replica->batch;
    int64_t sequences = from->sequences / parts, first = part * sequences * from->tokens;
    dt_status st = DT_OK;

    DT_ASSERT(from->sequences % parts == 0 &&
              sequences * from->tokens <=
                  replica->model->config.batch * replica->model->config.tokens);
    batch->tokens = dt_tensor_2d(batch->tokens.data, DT_I32, sequences, from->tokens);
    batch->targets = dt_tensor_2d(batch->targets.data, DT_I32, sequences, from->tokens);
    batch->seed = from->seed;
    batch->step = from->step;
    batch->micro_step = from->micro_step;
    batch->data_rank = from->first_data_rank + (uint32_t)part;
    DT_TRY(device->copy_in(device, batch->tokens.data, from->inputs + first,
                           dt_tensor_bytes(&batch->tokens), err));
    DT_TRY(device->copy_in(device, batch->targets.data, from->targets + first,
                           dt_tensor_bytes(&batch->targets), err));
out:
    return st;
}

dt_status dt_replica_forward_backward(dt_replica *replica, const dt_micro_batch *batch,
                                      int64_t part, int64_t parts, double loss_scale,
                                      double *loss_sum, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(load(replica, batch, part, parts, err));
    DT_TRY(dt_model_forward_backward(replica->model, &replica->batch, loss_scale, loss_sum, err));
out:
    return st;
}

dt_status dt_replica_evaluate(dt_replica *replica, const dt_micro_batch *batch, int64_t part,
                              int64_t parts, double *loss_sum, int64_t *counted, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(load(replica, batch, part, parts, err));
    DT_TRY(dt_model_evaluate(replica->model, &replica->batch, loss_sum, counted, err));
out:
    return st;
}
