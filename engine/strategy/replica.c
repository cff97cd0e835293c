/* replica: a model on its device, and the pass over a micro-step, recorded as graphs. */
#include <stdlib.h>
#include <string.h>

#include "engine/strategy/strategy_int.h"

/* --- the pass */

/* The values that the ops of a pass contain; the addresses of the units follow it. */
typedef struct pass_key {
    int64_t dim[DT_INPUTS_MAX][DT_MAX_DIMS];
    const void *batch, *clock, *loss_scale;
    uint64_t seed;
    uint64_t data_rank;
} pass_key;

_Static_assert(sizeof(pass_key) ==
                   (2 + DT_INPUTS_MAX * DT_MAX_DIMS) * sizeof(uint64_t) + 3 * sizeof(void *),
               "keys are compared byte by byte: no padding");

typedef struct run {
    dt_pass *pass;
    dt_recorded_pass *recorded; /* of passes like this one */
    const dt_batch *batch;
    const double *loss_scale;
    dt_graph_cache *graph_cache; /* the cache that records this run; NULL otherwise */
} run;

static size_t places_bytes(const dt_model *model)
{
    return 3 * (size_t)model->unit_count * sizeof(void *);
}

/* recorded: use graphs if the device can; tells: whether this pass writes to the log about them. */
static dt_status pass_open(dt_pass *out, dt_model *model, bool recorded, bool tells, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_pass){.model = model};
    if (!recorded)
        return DT_OK;
    out->places = calloc(1, places_bytes(model));
    if (out->places == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the places of the parameters");
    for (int i = 0; i < 2; i++)
        DT_TRY(dt_graph_cache_open(&out->recorded[i].graph_cache, model->device,
                                   "forward and backward pass",
                                   sizeof(pass_key) + places_bytes(model), tells, err));
out:
    return st;
}

/* accepts a zeroed pass */
static void pass_close(dt_pass *pass)
{
    for (int i = 0; i < 2; i++) {
        dt_graph_cache_close(pass->recorded[i].graph_cache);
        free(pass->recorded[i].layer_calls);
    }
    free(pass->places);
    memset(pass, 0, sizeof(*pass));
}

/* --- addresses of weights and gradients when a unit is used */

static void copy_places(void **out, const dt_model *model)
{
    size_t bytes = places_bytes(model) / 3;

    memcpy(out, model->weights, bytes);
    memcpy(out + model->unit_count, model->grads, bytes);
    memcpy(out + 2 * model->unit_count, model->frozen, bytes);
}

static void place_units(dt_pass *pass)
{
    const dt_model_hooks *hooks = pass->model->hooks;

    copy_places(pass->places, pass->model);
    if (hooks != NULL && hooks->place_units != NULL)
        hooks->place_units(hooks->self);
}

static void put_back(dt_pass *pass)
{
    dt_model *model = pass->model;
    size_t bytes = places_bytes(model) / 3;

    memcpy(model->weights, pass->places, bytes);
    memcpy(model->grads, pass->places + model->unit_count, bytes);
    memcpy(model->frozen, pass->places + 2 * model->unit_count, bytes);
}

static void write_key(dt_pass *pass, dt_graph_cache *graph_cache, const dt_batch *batch,
                      const double *loss_scale)
{
    unsigned char *key = dt_graph_cache_key(graph_cache);
    pass_key numbers = {.batch = batch->inputs[0].data,
                        .clock = batch->clock,
                        .seed = batch->seed,
                        .loss_scale = loss_scale,
                        .data_rank = batch->data_rank};

    for (int i = 0; i < DT_INPUTS_MAX; i++)
        memcpy(numbers.dim[i], batch->inputs[i].dim, sizeof(numbers.dim[i]));
    memcpy(key, &numbers, sizeof(numbers));
    place_units(pass);
    copy_places((void **)(void *)(key + sizeof(numbers)), pass->model);
    put_back(pass);
}

/* --- collectives within layers, and hooks, and the breaks that replace them in a recording */

typedef enum hook { BEFORE, AFTER, GRADS_READY, HOOKS } hook;

static int64_t break_of(hook which, int unit, bool backward)
{
    return ((int64_t)unit * 2 + backward) * HOOKS + which;
}

/* The break of the first collective within a layer; those of hooks come before. */
static int64_t layer_breaks(const dt_pass *pass)
{
    return break_of(BEFORE, pass->model->unit_count, false);
}

static dt_status call_layer(const dt_pass *pass, const dt_layer_call *call, dt_error *err)
{
    const dt_layer_peers *peers = pass->model->peers;

    return call->gathers ? peers->gather(peers->self, &call->all, &call->own, err)
                         : peers->sum(peers->self, &call->all, err);
}

static dt_status call_break(void *self, int64_t graph_break, dt_error *err)
{
    const run *r = self;
    const dt_model_hooks *hooks = r->pass->model->hooks;
    int unit = (int)(graph_break / HOOKS / 2);
    bool backward = graph_break / HOOKS % 2 != 0;

    if (graph_break >= layer_breaks(r->pass))
        return call_layer(r->pass, &r->recorded->layer_calls[graph_break - layer_breaks(r->pass)],
                          err);
    switch ((hook)(graph_break % HOOKS)) {
    case BEFORE:
        return hooks->before_unit(hooks->self, unit, backward, err);
    case AFTER:
        return hooks->after_unit(hooks->self, unit, backward, err);
    case GRADS_READY:
        return hooks->unit_grads_ready(hooks->self, unit, err);
    case HOOKS:
        break;
    }
    DT_ASSERT(!"a hook of model.h");
    return DT_OK;
}

static dt_status break_before(void *self, int unit, bool backward, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(BEFORE, unit, backward), err);
}

static dt_status break_after(void *self, int unit, bool backward, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(AFTER, unit, backward), err);
}

static dt_status break_grads_ready(void *self, int unit, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(GRADS_READY, unit, true), err);
}

/* Keeps the call for the runs of the recording. */
static dt_status break_at_layer(const run *r, dt_layer_call call, dt_error *err)
{
    dt_recorded_pass *to = r->recorded;

    if (to->layer_call_count == to->layer_call_capacity) {
        int capacity = to->layer_call_capacity == 0 ? 16 : 2 * to->layer_call_capacity;
        dt_layer_call *calls = realloc(to->layer_calls, (size_t)capacity * sizeof(*calls));

        if (calls == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the sums of a recorded pass");
        to->layer_calls = calls;
        to->layer_call_capacity = capacity;
    }
    to->layer_calls[to->layer_call_count] = call;
    return dt_graph_cache_break(r->graph_cache, layer_breaks(r->pass) + to->layer_call_count++,
                                err);
}

static dt_status break_sum(void *self, const dt_tensor *x, dt_error *err)
{
    return break_at_layer(self, (dt_layer_call){.all = *x}, err);
}

static dt_status break_gather(void *self, const dt_tensor *all, const dt_tensor *own, dt_error *err)
{
    return break_at_layer(self, (dt_layer_call){.gathers = true, .all = *all, .own = *own}, err);
}

/* --- a run */

static dt_status give(void *self, dt_error *err)
{
    const run *r = self;

    return dt_model_pass(r->pass->model, r->batch, r->loss_scale, err);
}

static dt_status record(void *self, dt_graph_cache *graph_cache, dt_error *err)
{
    run *r = self;
    dt_model *model = r->pass->model;
    const dt_model_hooks *hooks = model->hooks;
    const dt_layer_peers *peers = model->peers;
    const dt_layer_peers layer = {.self = r, .sum = break_sum, .gather = break_gather};
    dt_model_hooks breaks = {.self = r};
    dt_status st;

    if (hooks != NULL) {
        breaks.before_unit = hooks->before_unit != NULL ? break_before : NULL;
        breaks.after_unit = hooks->after_unit != NULL ? break_after : NULL;
        breaks.unit_grads_ready = hooks->unit_grads_ready != NULL ? break_grads_ready : NULL;
    }
    place_units(r->pass);
    r->graph_cache = graph_cache;
    r->recorded->layer_call_count = 0;
    model->hooks = &breaks;
    model->peers = peers != NULL ? &layer : NULL;
    st = give(r, err);
    model->hooks = hooks;
    model->peers = peers;
    put_back(r->pass);
    return st;
}

/* Like dt_model_pass; batch->clock is required. A recording contains the address of loss_scale, not
 * its value. */
static dt_status pass_run(dt_pass *pass, const dt_batch *batch, const double *loss_scale,
                          dt_error *err)
{
    dt_recorded_pass *recorded = &pass->recorded[pass->model->overwrites];
    run r = {.pass = pass, .recorded = recorded, .batch = batch, .loss_scale = loss_scale};
    const dt_graph_cache_ops ops = {
        .self = &r, .give = give, .record = record, .graph_break = call_break};

    DT_ASSERT(batch->clock != NULL);
    if (recorded->graph_cache != NULL)
        write_key(pass, recorded->graph_cache, batch, loss_scale);
    return dt_graph_cache_run(recorded->graph_cache, &ops, err);
}

/* --- gradients before the first pass of a step */

#define ZEROED_AT_ONCE 64

/* Ranges of gradients to zero. */
typedef struct zeros {
    dt_device *device;
    dt_tensor ranges[ZEROED_AT_ONCE];
    int count;
} zeros;

static dt_status zero_ranges(zeros *of, dt_error *err)
{
    int count = of->count;

    of->count = 0;
    return count > 0 ? of->device->ops->zero_each(of->device, of->ranges, count, err) : DT_OK;
}

static dt_status add_range(zeros *to, float *data, int64_t elems, dt_error *err)
{
    dt_status st = DT_OK;

    if (elems == 0)
        return DT_OK;
    if (to->count == ZEROED_AT_ONCE)
        DT_TRY(zero_ranges(to, err));
    to->ranges[to->count++] = dt_tensor_1d(data, DT_F32, elems);
out:
    return st;
}

/* Adds what a unit has besides gradients that are overwritten. */
static dt_status add_unit(zeros *to, const dt_model *model, int unit, bool *overwrites,
                          dt_error *err)
{
    const dt_unit *of = &model->units[unit];
    float *grads = model->grads[unit];
    int64_t at = 0;
    dt_status st = DT_OK;

    for (int i = of->first_param; i < of->first_param + of->param_count; i++) {
        const dt_param *param = &model->params[i];

        if (!dt_model_can_overwrite(model, param))
            continue;
        *overwrites = true;
        DT_TRY(add_range(to, grads + at, param->offset_elems - at, err));
        at = param->offset_elems + param->held.elems;
    }
    DT_TRY(add_range(to, grads + at, of->elems - at, err));
out:
    return st;
}

dt_status dt_zero_first_gradients(dt_model *model, bool *overwrites, dt_error *err)
{
    zeros ranges = {.device = model->device};
    const dt_ops *ops = model->device->ops;
    dt_status st = DT_OK;

    *overwrites = false;
    for (int unit = 0; unit < model->unit_count; unit++) {
        dt_tensor grads = dt_tensor_1d(model->grads[unit], DT_F32, model->units[unit].elems);

        if (ops->matmul_first_weight != NULL)
            DT_TRY(add_unit(&ranges, model, unit, overwrites, err));
        else if (dt_tensor_elems(&grads) > 0)
            DT_TRY(ops->zero(model->device, &grads, err));
    }
    DT_TRY(zero_ranges(&ranges, err));
out:
    return st;
}

/* --- the model and its batch */

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
    DT_TRY(pass_open(&out->pass, model, recorded, tells, err));
out:
    return st;
}

void dt_replica_close(dt_replica *replica)
{
    pass_close(&replica->pass);
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
    DT_TRY(pass_run(&replica->pass, &replica->batch, replica->loss_scale, err));
    DT_TRY(dt_model_loss(replica->model, &replica->batch, loss_sum, err));
out:
    return st;
}

dt_status dt_replica_evaluate(dt_replica *replica, const dt_micro_batch *batch, int64_t part,
                              int64_t parts, double *loss_sum, double *counted, dt_error *err)
{
    int64_t classes = dt_model_classes(replica->model);
    dt_status st = DT_OK;

    *loss_sum = 0;
    *counted = 0;
    if (has_none(batch, part, parts))
        return DT_OK;
    DT_TRY(load(replica, batch, part, parts, 0, err));
    DT_TRY(dt_model_evaluate(replica->model, &replica->batch, loss_sum, counted, err));
    if (batch->counts_of_classes != NULL)
        DT_TRY(dt_model_count_classes(replica->model,
                                      batch->counts_of_classes + part * classes * classes, err));
out:
    return st;
}
