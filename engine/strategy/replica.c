#include "engine/strategy/replica.h"

#include <string.h>

#include "base/banned.h"

/* What starts here may be read 16 bytes at a time. */
#define LINE_BYTES ((size_t)64)

dt_status dt_replica_open(dt_replica *out, dt_model *model, bool recorded, bool tells,
                          dt_error *err)
{
    size_t bytes = (size_t)(model->config.batch * model->config.tokens) * sizeof(int32_t);
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    out->targets_offset = LINE_BYTES + (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    DT_TRY(dt_upload_buffer_open(&out->upload, model->device, out->targets_offset + bytes, err));
    DT_TRY(dt_pass_open(&out->pass, model, recorded, tells, err));
out:
    return st;
}

void dt_replica_close(dt_replica *replica)
{
    dt_pass_close(&replica->pass);
    dt_upload_buffer_close(&replica->upload);
    memset(replica, 0, sizeof(*replica));
}

/* Tensors in the upload buffer's memory. */
static void lay_out(dt_replica *replica, int64_t sequences, int64_t tokens)
{
    unsigned char *data = replica->upload.data;

    replica->batch.clock = replica->upload.data;
    replica->batch.tokens = dt_tensor_2d(data + LINE_BYTES, DT_I32, sequences, tokens);
    replica->batch.targets =
        dt_tensor_2d(data + replica->targets_offset, DT_I32, sequences, tokens);
}

/* The host goes on while they are copied; the ops that follow find them there. */
static dt_status load(dt_replica *replica, const dt_micro_batch *from, int64_t part, int64_t parts,
                      dt_error *err)
{
    int64_t sequences = from->sequences / parts, first = part * sequences * from->tokens;
    size_t bytes = (size_t)(sequences * from->tokens) * sizeof(int32_t);
    dt_philox_clock clock = {.step = from->step, .micro_step = from->micro_step};
    unsigned char *host = replica->upload.host;
    dt_status st = DT_OK;

    DT_ASSERT(from->sequences % parts == 0 &&
              sequences * from->tokens <=
                  replica->model->config.batch * replica->model->config.tokens);
    lay_out(replica, sequences, from->tokens);
    replica->batch.seed = from->seed;
    replica->batch.data_rank = from->first_data_rank + (uint32_t)part;
    DT_TRY(dt_upload_buffer_begin(&replica->upload, err));
    memcpy(host, &clock, sizeof(clock));
    memcpy(host + LINE_BYTES, from->inputs + first, bytes);
    memcpy(host + replica->targets_offset, from->targets + first, bytes);
    DT_TRY(dt_upload_buffer_send(&replica->upload, err));
out:
    return st;
}

dt_status dt_replica_forward_backward(dt_replica *replica, const dt_micro_batch *batch,
                                      int64_t part, int64_t parts, double loss_scale,
                                      double *loss_sum, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(load(replica, batch, part, parts, err));
    DT_TRY(dt_pass_run(&replica->pass, &replica->batch, loss_scale, err));
    DT_TRY(dt_model_loss(replica->model, &replica->batch, loss_sum, err));
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
