#include "engine/strategy/replica.h"

#include <string.h>

/* Alignment of the inputs: kernels can read them 16 bytes at a time. */
#define LINE_BYTES ((size_t)64)

/* Per-pass values, uploaded in front of the inputs. */
typedef struct upload_header {
    dt_philox_clock clock;
    double loss_scale;
} upload_header;

_Static_assert(sizeof(upload_header) <= LINE_BYTES, "the inputs follow the header");

/* Set the offset of each input after the header; returns the end. */
static size_t lay_out_feed(dt_replica *replica)
{
    const dt_model_config *config = &replica->model->config;
    dt_input inputs[DT_INPUTS_MAX];
    size_t end = LINE_BYTES;

    replica->input_count = dt_architecture_find(config->kind)->inputs(inputs, config);
    for (int i = 0; i < replica->input_count; i++) {
        size_t bytes = (size_t)(config->batch * inputs[i].width) * dt_dtype_bytes(inputs[i].dtype);

        replica->offsets[i] = end;
        end += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    }
    return end;
}

dt_status dt_replica_open(dt_replica *out, dt_model *model, bool recorded, bool tells,
                          dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    DT_TRY(dt_upload_buffer_open(&out->upload, model->device, lay_out_feed(out), err));
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

/* Capacity in bytes of the batch's input `i`. */
static size_t room_of(const dt_replica *replica, int i)
{
    bool last = i + 1 == replica->input_count;

    return (last ? replica->upload.bytes : replica->offsets[i + 1]) - replica->offsets[i];
}

/* Copy samples first .. first+samples of a host tensor to the upload buffer, as input `i` of the
 * batch. */
static void place_input(dt_replica *replica, int i, const dt_tensor *from, int64_t first,
                        int64_t samples)
{
    size_t sample_bytes = dt_tensor_bytes(from) / (size_t)from->dim[0];
    size_t offset = replica->offsets[i], bytes = (size_t)samples * sample_bytes;
    const unsigned char *source = from->data;
    unsigned char *host = replica->upload.host, *data = replica->upload.data;

    DT_ASSERT(bytes <= room_of(replica, i));
    memcpy(host + offset, source + (size_t)first * sample_bytes, bytes);
    replica->batch.inputs[i] = *from;
    replica->batch.inputs[i].data = data + offset;
    replica->batch.inputs[i].dim[0] = samples;
}

/* Index of the first sample of `part` of `parts`; part sizes differ by at most one. */
static int64_t part_start(const dt_micro_batch *from, int64_t part, int64_t parts)
{
    return part * from->samples / parts;
}

/* Whether a part is empty. Only in dp, whose replicas do not wait for each other during a pass. */
static bool has_none(const dt_micro_batch *from, int64_t part, int64_t parts)
{
    return parts > 1 && from->parts == NULL &&
           part_start(from, part, parts) == part_start(from, part + 1, parts);
}

/* Upload the batch. The host continues meanwhile; ops launched later see the data. */
static dt_status load(dt_replica *replica, const dt_micro_batch *whole, int64_t part, int64_t parts,
                      double loss_scale, dt_error *err)
{
    const dt_micro_batch *from = whole->parts != NULL ? &whole->parts[part] : whole;
    int64_t first = whole->parts != NULL ? 0 : part_start(whole, part, parts);
    int64_t samples =
        whole->parts != NULL ? from->samples : part_start(whole, part + 1, parts) - first;
    upload_header header = {.clock = {.step = whole->step, .micro_step = whole->micro_step},
                            .loss_scale = loss_scale};
    /* only to compute addresses: it is device memory */
    const upload_header *placed = replica->upload.data;
    dt_status st = DT_OK;

    DT_ASSERT(samples > 0);
    replica->batch.clock = &placed->clock;
    replica->loss_scale = &placed->loss_scale;
    replica->batch.seed = whole->seed;
    replica->batch.data_rank = whole->first_data_rank + (uint32_t)part;
    DT_TRY(dt_upload_buffer_begin(&replica->upload, err));
    memcpy(replica->upload.host, &header, sizeof(header));
    for (int i = 0; i < replica->input_count; i++)
        place_input(replica, i, &from->inputs[i], first, samples);
    DT_TRY(dt_upload_buffer_send(&replica->upload, err));
out:
    return st;
}

dt_status dt_replica_forward_backward(dt_replica *replica, const dt_micro_batch *batch,
                                      int64_t part, int64_t parts, double loss_scale,
                                      double *loss_sum, dt_error *err)
{
    dt_status st = DT_OK;

    *loss_sum = 0;
    if (has_none(batch, part, parts))
        return DT_OK;
    DT_TRY(load(replica, batch, part, parts, loss_scale, err));
    DT_TRY(dt_pass_run(&replica->pass, &replica->batch, replica->loss_scale, err));
    DT_TRY(dt_model_loss(replica->model, &replica->batch, loss_sum, err));
out:
    return st;
}

dt_status dt_replica_evaluate(dt_replica *replica, const dt_micro_batch *batch, int64_t part,
                              int64_t parts, double *loss_sum, int64_t *counted, dt_error *err)
{
    dt_status st = DT_OK;

    *loss_sum = 0;
    *counted = 0;
    if (has_none(batch, part, parts))
        return DT_OK;
    DT_TRY(load(replica, batch, part, parts, 0, err));
    DT_TRY(dt_model_evaluate(replica->model, &replica->batch, loss_sum, counted, err));
out:
    return st;
}
