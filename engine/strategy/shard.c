#include "engine/strategy/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Neighbouring parameters of one slice that decay, or do not: one call of the optimizer. */
typedef struct dt_shard_run {
    int unit;
    int64_t start_elems, elems; /* in the slice */
    bool decay;
} dt_shard_run;

dt_status dt_shard_open(dt_shard *out, dt_model *model, const dt_optimizer_options *optimizer,
                        dt_error *err)
{
    size_t params = (size_t)model->param_count;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    out->optimizer = dt_optimizer_of(optimizer->kind);
    out->states = dt_optimizer_states(optimizer);
    out->units = calloc((size_t)model->unit_count, sizeof(*out->units));
    out->runs = calloc(params, sizeof(*out->runs));
    out->chunks = calloc(params, sizeof(*out->chunks));
    if (out->units == NULL || out->runs == NULL || out->chunks == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    DT_TRY(dt_host_mirror_open(&out->host_mirror, model->device,
                               DT_STATE_KINDS * model->param_count, err));
    DT_TRY(
        dt_upload_buffer_open(&out->factors, model->device, 2 * sizeof(dt_optimizer_factors), err));
out:
    return st;
}

dt_status dt_shard_record(dt_shard *shard, bool recorded, bool tells, dt_error *err)
{
    if (!recorded)
        return DT_OK;
    return dt_graph_cache_open(&shard->graph_cache, shard->model->device, "optimizer step", 0, 0,
                               tells, err);
}

void dt_shard_close(dt_shard *shard)
{
    dt_graph_cache_close(shard->graph_cache);
    dt_upload_buffer_close(&shard->factors);
    dt_host_mirror_close(&shard->host_mirror);
    free(shard->units);
    free(shard->runs);
    free(shard->chunks);
    memset(shard, 0, sizeof(*shard));
}

void dt_shard_take_states(dt_shard *shard, int unit, dt_layout *layout)
{
    dt_shard_unit *slice = &shard->units[unit];

    for (int s = 0; s < shard->states; s++)
        slice->state[s] = dt_layout_take(layout, 4 * (size_t)slice->elems);
}

void dt_shard_take_unit(dt_shard *shard, int unit, dt_layout *layout)
{
    dt_model *model = shard->model;
    dt_shard_unit *slice = &shard->units[unit];
    size_t elems = (size_t)model->units[unit].elems;

    slice->elems = (int64_t)elems;
    slice->master = dt_layout_take(layout, 4 * elems);
    slice->grad = dt_layout_take(layout, 4 * elems);
    dt_shard_take_states(shard, unit, layout);
    if (model->config.dtype != DT_F32)
        slice->copy = dt_layout_take(layout, dt_dtype_bytes(model->config.dtype) * elems);
    model->grads[unit] = slice->grad;
    model->weights[unit] = slice->copy != NULL ? slice->copy : slice->master;
}

int64_t dt_shard_optimizer_bytes(const dt_shard *shard)
{
    int64_t elems = 0;

    for (int unit = 0; unit < shard->model->unit_count; unit++)
        elems += shard->units[unit].elems;
    return 4 * shard->states * elems;
}

/* --- tables */

/* The gap between two parameters holds zeros, and every optimizer keeps zeros. */
static void add_run(dt_shard *shard, const dt_param *param, int64_t start, int64_t elems)
{
    dt_shard_run *last = shard->run_count > 0 ? &shard->runs[shard->run_count - 1] : NULL;

    if (last != NULL && last->unit == param->unit && last->decay == param->decay)
        last->elems = start + elems - last->start_elems;
    else
        shard->runs[shard->run_count++] = (dt_shard_run){param->unit, start, elems, param->decay};
}

static dt_box whole_of(const dt_param *param)
{
    return dt_box_whole(param->dim, param->ndim);
}

static dt_status add_chunk(dt_shard *shard, int param, int64_t param_start, int64_t start,
                           int64_t elems, dt_error *err)
{
    const dt_shard_unit *slice = &shard->units[shard->model->params[param].unit];
    dt_state_chunk *chunk = &shard->chunks[shard->chunk_count++];
    dt_status st = DT_OK;

    *chunk = (dt_state_chunk){
        .param = param, .slice = {whole_of(&shard->model->params[param]), param_start, elems}};
    DT_TRY(
        dt_host_mirror_add(&shard->host_mirror, &chunk->value, slice->master + start, elems, err));
    for (int s = 0; s < shard->states; s++)
        DT_TRY(dt_host_mirror_add(&shard->host_mirror, &chunk->state[s], slice->state[s] + start,
                                  elems, err));
out:
    return st;
}

dt_status dt_shard_make_tables(dt_shard *shard, bool with_chunks, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < shard->model->param_count; i++) {
        const dt_param *param = &shard->model->params[i];
        const dt_shard_unit *slice = &shard->units[param->unit];
        int64_t first = param->offset_elems, end = first + param->elems;

        if (first < slice->start_elems)
            first = slice->start_elems;
        if (end > slice->start_elems + slice->elems)
            end = slice->start_elems + slice->elems;
        if (first >= end)
            continue;
        add_run(shard, param, first - slice->start_elems, end - first);
        if (with_chunks)
            DT_TRY(add_chunk(shard, i, first - param->offset_elems, first - slice->start_elems,
                             end - first, err));
    }
out:
    return st;
}

dt_status dt_shard_export(dt_shard *shard, const dt_state_chunk **chunks, int *count, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_from_device(&shard->host_mirror, err));
    *chunks = shard->chunks;
    *count = shard->chunk_count;
out:
    return st;
}

/* --- values */

dt_status dt_shard_init(dt_shard *shard, uint64_t seed, dt_error *err)
{
    for (int i = 0; i < shard->chunk_count; i++) {
        const dt_state_chunk *chunk = &shard->chunks[i];
        dt_box box = whole_of(&shard->model->params[chunk->param]);
        dt_slice whole = dt_slice_whole(&box);

        for (dt_overlap run = dt_overlap_of(&chunk->slice, &whole); dt_overlap_next(&run);)
            dt_model_init_range(chunk->value + run.at_a, shard->model, chunk->param, run.at_b,
                                run.elems, seed);
    }
    return dt_host_mirror_to_device(&shard->host_mirror, err);
}

dt_status dt_shard_refresh(dt_shard *shard, dt_error *err)
{
    dt_device *device = shard->model->device;
    dt_status st = DT_OK;

    for (int unit = 0; unit < shard->model->unit_count; unit++) {
        const dt_shard_unit *slice = &shard->units[unit];
        dt_tensor master = dt_tensor_1d(slice->master, DT_F32, slice->elems);
        dt_tensor copy = dt_tensor_1d(slice->copy, shard->model->config.dtype, slice->elems);

        if (copy.data != NULL)
            DT_TRY(device->ops->cast(device, &copy, &master, err));
    }
out:
    return st;
}

/* --- a step */

#define SLICES_AT_ONCE 64

/* Of the slices' gradients one by one, so that they are added in the same order on every device. */
static dt_status square_slices(dt_device *device, double *squares, const dt_tensor *grads,
                               int count, dt_error *err)
{
    dt_status st = DT_OK;

    if (device->ops->sum_squares_each != NULL)
        return device->ops->sum_squares_each(device, squares, grads, count, err);
    for (int i = 0; i < count; i++)
        DT_TRY(device->ops->sum_squares(device, &squares[i], &grads[i], err));
out:
    return st;
}

dt_status dt_shard_sum_squares(dt_shard *shard, double *out, dt_error *err)
{
    int units = shard->model->unit_count;
    dt_tensor grads[SLICES_AT_ONCE];
    double squares[SLICES_AT_ONCE], total = 0;
    dt_status st = DT_OK;

    for (int first = 0; first < units; first += SLICES_AT_ONCE) {
        int count = units - first < SLICES_AT_ONCE ? units - first : SLICES_AT_ONCE;

        for (int i = 0; i < count; i++) {
            const dt_shard_unit *slice = &shard->units[first + i];

            grads[i] = dt_tensor_1d(slice->grad, DT_F32, slice->elems);
        }
        DT_TRY(square_slices(shard->model->device, squares, grads, count, err));
        for (int i = 0; i < count; i++)
            total += squares[i];
    }
    *out = total;
out:
    return st;
}

static dt_status send_factors(dt_shard *shard, const dt_optimizer_args *args, dt_error *err)
{
    dt_optimizer_factors *sets = shard->factors.host;
    dt_optimizer_args without = *args;
    dt_status st = DT_OK;

    without.options.weight_decay = 0;
    DT_TRY(dt_upload_buffer_begin(&shard->factors, err));
    shard->optimizer->factors(&sets[false], &without);
    shard->optimizer->factors(&sets[true], args);
    DT_TRY(dt_upload_buffer_send(&shard->factors, err));
out:
    return st;
}

static dt_optimizer_part part_of(const dt_shard *shard, const dt_shard_run *run)
{
    const dt_shard_unit *slice = &shard->units[run->unit];
    dt_dtype dtype = shard->model->config.dtype;
    dt_optimizer_part part = {
        .param = dt_tensor_1d(slice->master + run->start_elems, DT_F32, run->elems),
        .grad = dt_tensor_1d(slice->grad + run->start_elems, DT_F32, run->elems),
        .copy = dt_tensor_1d(NULL, dtype, run->elems),
        .states = shard->states,
    };

    if (slice->copy != NULL)
        part.copy.data = (char *)slice->copy + (size_t)run->start_elems * dt_dtype_bytes(dtype);
    for (int s = 0; s < shard->states; s++)
        part.state[s] = dt_tensor_1d(slice->state[s] + run->start_elems, DT_F32, run->elems);
    return part;
}

static dt_status step_runs(void *self, dt_error *err)
{
    dt_shard *shard = self;
    const dt_optimizer_factors *sets = shard->factors.data;
    dt_status st = DT_OK;

    for (int i = 0; i < shard->run_count; i++) {
        dt_optimizer_part part = part_of(shard, &shard->runs[i]);

        DT_TRY(
            shard->optimizer->step(shard->model->device, &part, &sets[shard->runs[i].decay], err));
    }
out:
    return st;
}

/* Memory of the slices is fixed, and all that changes is in the factors. */
static dt_status record_runs(void *self, dt_graph_cache *graph_cache, dt_error *err)
{
    return step_runs(self, err);
}

dt_status dt_shard_update(dt_shard *shard, const dt_optimizer_args *args, dt_error *err)
{
    const dt_graph_cache_ops ops = {.self = shard, .give = step_runs, .record = record_runs};
    dt_status st = DT_OK;

    DT_ASSERT(args->step >= 1);
    DT_TRY(send_factors(shard, args, err));
    DT_TRY(dt_graph_cache_run(shard->graph_cache, &ops, err));
out:
    return st;
}

void dt_shard_leave_model(dt_model *model)
{
    model->hooks = NULL;
    for (int unit = 0; unit < model->unit_count; unit++) {
        model->weights[unit] = NULL;
        model->grads[unit] = NULL;
    }
}
