#include "engine/strategy/replica.h"

#include <string.h>

#include "engine/device/queue.h"

#include "base/banned.h"

dt_status dt_replica_open(dt_replica *out, dt_model *model, dt_error *err)
{
    size_t bytes = (size_t)(model->config.batch * model->config.tokens) * sizeof(int32_t);
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    DT_TRY(dt_device_arena_open(&out->memory, model->device, 2 * bytes + 128, err));
    DT_TRY(model->device->host_alloc(model->device, (void **)&out->host, 2 * bytes, err));
    DT_TRY(model->device->queues->mark_open(model->device, &out->loaded, err));
    out->batch.tokens.data = dt_device_arena_take(&out->memory, bytes);
    out->batch.targets.data = dt_device_arena_take(&out->memory, bytes);
out:
    return st;
}

void dt_replica_close(dt_replica *replica)
{
    dt_device *device = replica->model != NULL ? replica->model->device : NULL;

    if (device != NULL) {
        device->queues->mark_close(device, replica->loaded);
        device->host_free(device, replica->host);
    }
    dt_device_arena_close(&replica->memory);
    memset(replica, 0, sizeof(*replica));
}

/* The host goes on while they are copied; the ops that follow find them there. */
static dt_status copy_in(dt_replica *replica, const dt_micro_batch *from, int64_t first,
                         dt_error *err)
{
    dt_device *device = replica->model->device;
    const dt_queues *queues = device->queues;
    dt_batch *batch = &replica->batch;
    size_t bytes = dt_tensor_bytes(&batch->tokens);
    int32_t *tokens = replica->host, *targets = tokens + dt_tensor_elems(&batch->tokens);
    dt_status st = DT_OK;

    DT_TRY(queues->wait(device, replica->loaded, err));
    memcpy(tokens, from->inputs + first, bytes);
    memcpy(targets, from->targets + first, bytes);
    DT_TRY(queues->copy_in(device, NULL, batch->tokens.data, tokens, bytes, err));
    DT_TRY(queues->copy_in(device, NULL, batch->targets.data, targets, bytes, err));
    DT_TRY(queues->record(device, replica->loaded, NULL, err));
out:
    return st;
}

static dt_status load(dt_replica *replica, const dt_micro_batch *from, int64_t part, int64_t parts,
                      dt_error *err)
{
    dt_batch *batch = &replica->batch;
    int64_t sequences = from->sequences / parts, first = part * sequences * from->tokens;

    DT_ASSERT(from->sequences % parts == 0 &&
              sequences * from->tokens <=
                  replica->model->config.batch * replica->model->config.tokens);
    batch->tokens = dt_tensor_2d(batch->tokens.data, DT_I32, sequences, from->tokens);
    batch->targets = dt_tensor_2d(batch->targets.data, DT_I32, sequences, from->tokens);
    batch->seed = from->seed;
    batch->step = from->step;
    batch->micro_step = from->micro_step;
    batch->data_rank = from->first_data_rank + (uint32_t)part;
    return copy_in(replica, from, first, err);
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
