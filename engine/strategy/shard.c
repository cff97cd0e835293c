/* shard: the part of every unit that a rank owns: memory, initial values, checkpoints. shard_step.c updates
 * it. */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "engine/strategy/strategy_int.h"

/* --- device memory as the host sees it */

#define STAGED_ELEMS ((int64_t)1 << 20) /* of a frozen tensor, converted at once */

typedef struct dt_host_mirror_piece {
    float *host, *device_memory; /* both addresses of the piece; equal on the CPU */
    size_t bytes;
    /* of a tensor whose copy exists only now and then (frozen, or not fp32): what it is a copy of, and where its
     * address is put. NULL: another */
    dt_tensor frozen;
    float **address;
} dt_host_mirror_piece;

/* Open a mirror of at most `capacity` pieces. */
static dt_status host_mirror_open(dt_host_mirror *out, dt_device *device, int capacity,
                                  dt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->device = device;
    out->capacity = capacity;
    out->pieces = calloc((size_t)capacity + 1, sizeof(*out->pieces));
    if (out->pieces == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    return DT_OK;
}

static dt_status take_copy(dt_host_mirror_piece *piece, dt_error *err)
{
    piece->host = calloc(1, piece->bytes);
    if (piece->host == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM,
                       "no host memory (%.1f MB) for a copy of the device's tensors",
                       (double)piece->bytes / 1e6);
    return DT_OK;
}

/* *host: host address of `elems` floats of device memory; NULL if device_memory is NULL. */
static dt_status host_mirror_add(dt_host_mirror *mirror, float **host, float *device_memory,
                                 int64_t elems, dt_error *err)
{
    dt_host_mirror_piece piece = {.host = device_memory,
                                  .device_memory = device_memory,
                                  .bytes = (size_t)elems * sizeof(float)};
    dt_status st = DT_OK;

    *host = NULL;
    if (device_memory == NULL)
        return DT_OK;
    DT_ASSERT(mirror->count < mirror->capacity);
    if (!mirror->device->host_reads)
        DT_TRY(take_copy(&piece, err));
    mirror->pieces[mirror->count++] = piece;
    *host = piece.host;
out:
    return st;
}

/* The same for a tensor in any type; *host is NULL while the copy does not exist. */
static dt_status host_mirror_add_typed(dt_host_mirror *mirror, float **host,
                                       const dt_tensor *device_memory, dt_error *err)
{
    dt_host_mirror_piece piece = {.bytes = (size_t)dt_tensor_elems(device_memory) * sizeof(float),
                                  .frozen = *device_memory,
                                  .address = host};

    if (device_memory->dtype == DT_F32 && mirror->device->host_reads)
        return host_mirror_add(mirror, host, device_memory->data, dt_tensor_elems(device_memory),
                               err);
    *host = NULL;
    DT_ASSERT(mirror->count < mirror->capacity);
    mirror->pieces[mirror->count++] = piece;
    return DT_OK;
}

dt_status dt_host_mirror_hold(dt_host_mirror *mirror, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->address == NULL || piece->host != NULL)
            continue;
        DT_TRY(take_copy(piece, err));
        *piece->address = piece->host;
    }
out:
    return st;
}

void dt_host_mirror_release(dt_host_mirror *mirror)
{
    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->address == NULL)
            continue;
        free(piece->host);
        piece->host = NULL;
        *piece->address = NULL;
    }
}

/* Copies a frozen tensor to or from its copy: directly if it is fp32, otherwise through `stage`, which the device
 * converts. */
static dt_status convert(dt_device *device, const dt_host_mirror_piece *piece,
                         const dt_device_arena *stage, bool to_device, dt_error *err)
{
    int64_t elems = dt_tensor_elems(&piece->frozen), count;
    dt_dtype dtype = piece->frozen.dtype;
    unsigned char *data = piece->frozen.data;
    dt_status st = DT_OK;

    if (dtype == DT_F32)
        return to_device ? device->copy_in(device, data, piece->host, piece->bytes, err)
                         : device->copy_out(device, piece->host, data, piece->bytes, err);
    for (int64_t at = 0; at < elems; at += count) {
        count = elems - at < STAGED_ELEMS ? elems - at : STAGED_ELEMS;
        size_t bytes = (size_t)count * sizeof(float);
        dt_tensor here = dt_tensor_1d(data + (size_t)at * dt_dtype_bytes(dtype), dtype, count);
        dt_tensor wide = dt_tensor_1d(stage->base, DT_F32, count);

        if (to_device) {
            DT_TRY(device->copy_in(device, wide.data, piece->host + at, bytes, err));
            DT_TRY(device->ops->cast(device, &here, &wide, err));
        } else {
            DT_TRY(device->ops->cast(device, &wide, &here, err));
            DT_TRY(device->copy_out(device, piece->host + at, wide.data, bytes, err));
        }
        DT_TRY(device->synchronize(device, err)); /* before the stage is used again */
    }
out:
    return st;
}

dt_status dt_shard_import_base(dt_strategy_state *state, const dt_state_chunk *chunk, int64_t at,
                               const float *values, int64_t elems, dt_error *err)
{
    dt_device *device = state->model->device;
    dt_dtype dtype = chunk->frozen.dtype;
    unsigned char *data = chunk->frozen.data;
    dt_host_mirror_piece piece = {
        .host = (float *)(uintptr_t)values, /* only read */
        .bytes = (size_t)elems * sizeof(float),
        .frozen = dt_tensor_1d(data + (size_t)at * dt_dtype_bytes(dtype), dtype, elems)};
    dt_device_arena stage = {0};
    dt_status st = DT_OK;

    DT_ASSERT(at + elems <= dt_tensor_elems(&chunk->frozen));
    if (dtype != DT_F32)
        DT_TRY(dt_device_arena_open(&stage, device, (size_t)STAGED_ELEMS * sizeof(float), err));
    DT_TRY(convert(device, &piece, &stage, true, err));
    DT_TRY(device->synchronize(device, err)); /* the caller's values may change now */
out:
    dt_device_arena_close(&stage);
    return st;
}

/* Copies frozen tensors whose copies exist. */
static dt_status convert_all(dt_host_mirror *mirror, bool to_device, dt_error *err)
{
    dt_device_arena stage = {0};
    dt_status st = DT_OK;

    for (int i = 0; i < mirror->count; i++) {
        const dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->address == NULL || piece->host == NULL)
            continue;
        if (stage.base == NULL)
            DT_TRY(dt_device_arena_open(&stage, mirror->device,
                                        (size_t)STAGED_ELEMS * sizeof(float), err));
        DT_TRY(convert(mirror->device, piece, &stage, to_device, err));
    }
out:
    dt_device_arena_close(&stage);
    return st;
}

dt_status dt_host_mirror_from_device(dt_host_mirror *mirror, dt_error *err)
{
    dt_device *device = mirror->device;
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_hold(mirror, err));
    DT_TRY(convert_all(mirror, false, err));
    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->address == NULL && piece->host != piece->device_memory)
            DT_TRY(device->copy_out(device, piece->host, piece->device_memory, piece->bytes, err));
    }
    DT_TRY(device->synchronize(device, err));
out:
    return st;
}

dt_status dt_host_mirror_to_device(dt_host_mirror *mirror, dt_error *err)
{
    dt_device *device = mirror->device;
    dt_status st = DT_OK;

    DT_TRY(convert_all(mirror, true, err));
    for (int i = 0; i < mirror->count; i++) {
        dt_host_mirror_piece *piece = &mirror->pieces[i];

        if (piece->address == NULL && piece->host != piece->device_memory)
            DT_TRY(device->copy_in(device, piece->device_memory, piece->host, piece->bytes, err));
    }
    DT_TRY(device->synchronize(device, err));
    dt_host_mirror_release(mirror);
out:
    return st;
}

/* accepts a zeroed mirror */
static void host_mirror_close(dt_host_mirror *mirror)
{
    dt_host_mirror_release(mirror);
    for (int i = 0; i < mirror->count; i++)
        if (mirror->pieces[i].host != mirror->pieces[i].device_memory)
            free(mirror->pieces[i].host);
    free(mirror->pieces);
    memset(mirror, 0, sizeof(*mirror));
}

/* --- the part */

#define ALIGN_ELEMS 16 /* parameters and slices start at multiples of this */

dt_status dt_shard_open(dt_shard *out, dt_model *model, const dt_optimizer_options *optimizer,
                        dt_error *err)
{
    size_t params = (size_t)model->param_count, pieces = DT_PARTS_MOST * params;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->model = model;
    out->optimizer = dt_optimizer_of(optimizer->kind);
    out->options = *optimizer;
    out->units = calloc((size_t)model->unit_count, sizeof(*out->units));
    out->runs = calloc(params, sizeof(*out->runs));
    out->chunks = calloc(pieces, sizeof(*out->chunks));
    if (out->units == NULL || out->runs == NULL || out->chunks == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    DT_TRY(host_mirror_open(&out->host_mirror, model->device, DT_STATE_KINDS * (int)pieces, err));
    DT_TRY(dt_upload_buffer_open(&out->factors, model->device,
                                 DT_OPTIMIZER_GROUPS * sizeof(dt_optimizer_factors), err));
out:
    return st;
}

dt_status dt_shard_record(dt_shard *shard, bool recorded, bool tells, dt_error *err)
{
    if (!recorded)
        return DT_OK;
    return dt_graph_cache_open(&shard->graph_cache, shard->model->device, "optimizer step", 0,
                               tells, err);
}

void dt_shard_close(dt_shard *shard)
{
    dt_graph_cache_close(shard->graph_cache);
    dt_upload_buffer_close(&shard->factors);
    host_mirror_close(&shard->host_mirror);
    free(shard->units);
    free(shard->runs);
    free(shard->chunks);
    memset(shard, 0, sizeof(*shard));
}

/* --- layout of a parameter's optimizer states */

static dt_optimizer_group group_of(const dt_shard *shard, const dt_param *param)
{
    if (shard->optimizer->matrices != NULL && dt_param_is_matrix(param))
        return DT_GROUP_MATRIX;
    return param->decay ? DT_GROUP_DECAYED : DT_GROUP_KEPT;
}

static int states_of(const dt_shard *shard, const dt_param *param)
{
    return param->trainable ? dt_optimizer_states(&shard->options, dt_param_is_matrix(param)) : 0;
}

bool dt_shard_part_in_slice(int64_t *first, int64_t *end, int64_t *at, const dt_shard *shard,
                            const dt_param *param)
{
    const dt_shard_unit *slice = &shard->units[param->unit];
    int64_t start = param->trainable ? slice->start_elems : slice->frozen_start_elems;
    int64_t before = start - param->offset_elems;

    *first = before > 0 ? before : 0;
    *end = before + (param->trainable ? slice->elems : slice->frozen_elems);
    if (*end > param->held.elems)
        *end = param->held.elems;
    *at = *first - before;
    return *first < *end;
}

/* Offset of state s of parameter `stop`'s part in the slice; if `stop` is past the unit's last
 * parameter, the number of elements with that state. */
static int64_t state_start(const dt_shard *shard, int unit, int s, int stop)
{
    const dt_unit *of = &shard->model->units[unit];
    int64_t first, end, in_slice, at = 0;

    for (int p = of->first_param; p < stop; p++) {
        const dt_param *param = &shard->model->params[p];

        if (s < states_of(shard, param) &&
            dt_shard_part_in_slice(&first, &end, &in_slice, shard, param))
            at += (end - first + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    }
    return at;
}

size_t dt_shard_state_bytes(const dt_shard *shard)
{
    return dt_dtype_bytes(dt_optimizer_state_dtype(&shard->options));
}

/* State s of a unit from element `at` on. */
static dt_tensor state_at(const dt_shard *shard, int unit, int s, int64_t at, int64_t elems)
{
    unsigned char *data = shard->units[unit].state[s];

    return dt_tensor_1d(data + (size_t)at * dt_shard_state_bytes(shard),
                        dt_optimizer_state_dtype(&shard->options), elems);
}

/* Whether every parameter has state s, so that the state is laid out like the parameters. */
static bool all_have(const dt_shard *shard, int s)
{
    return s < dt_optimizer_states(&shard->options, true);
}

void dt_shard_take_states(dt_shard *shard, int unit, dt_layout *layout)
{
    const dt_unit *of = &shard->model->units[unit];
    dt_shard_unit *slice = &shard->units[unit];

    for (int s = 0; s < dt_optimizer_states(&shard->options, false); s++) {
        slice->state_elems[s] =
            all_have(shard, s) ? slice->elems
                               : state_start(shard, unit, s, of->first_param + of->param_count);
        slice->state[s] =
            dt_layout_take(layout, dt_shard_state_bytes(shard) * (size_t)slice->state_elems[s]);
    }
}

const dt_whole_matrices *dt_shard_shaping(const dt_shard *shard)
{
    return dt_optimizers[shard->options.kind].whole_matrices;
}

dt_dtype dt_shard_work_dtype(const dt_shard *shard)
{
    return dt_shard_shaping(shard)->dtype(shard->model->config.dtype);
}

void dt_shard_take_work(dt_shard *shard, dt_layout *layout)
{
    shard->work_bytes = 0;
    for (int i = 0; i < shard->model->param_count; i++) {
        const dt_param *param = &shard->model->params[i];
        int64_t bytes = 0;

        if (param->trainable && group_of(shard, param) == DT_GROUP_MATRIX)
            bytes = dt_shard_shaping(shard)->work_bytes(param->held.dim[0], param->held.dim[1],
                                                        dt_shard_work_dtype(shard));
        if ((size_t)bytes > shard->work_bytes)
            shard->work_bytes = (size_t)bytes;
    }
    if (shard->work_bytes > 0)
        shard->work = dt_layout_take(layout, shard->work_bytes);
}

void dt_shard_take_unit(dt_shard *shard, int unit, dt_layout *layout)
{
    dt_model *model = shard->model;
    dt_shard_unit *slice = &shard->units[unit];
    size_t elems = (size_t)model->units[unit].elems;
    size_t frozen_elems = (size_t)model->units[unit].frozen_elems;

    slice->elems = (int64_t)elems;
    slice->frozen_elems = (int64_t)frozen_elems;
    slice->master = dt_layout_take(layout, 4 * elems);
    slice->grad = dt_layout_take(layout, 4 * elems);
    dt_shard_take_states(shard, unit, layout);
    if (model->config.dtype != DT_F32)
        slice->copy = dt_layout_take(layout, dt_dtype_bytes(model->config.dtype) * elems);
    slice->frozen = dt_layout_take(layout, dt_dtype_bytes(model->config.dtype) * frozen_elems);
    model->frozen[unit] = slice->frozen;
    model->grads[unit] = slice->grad;
    model->weights[unit] = slice->copy != NULL ? slice->copy : slice->master;
}

int64_t dt_shard_optimizer_bytes(const dt_shard *shard)
{
    int64_t elems = 0;

    for (int unit = 0; unit < shard->model->unit_count; unit++)
        for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
            elems += shard->units[unit].state_elems[s];
    return (int64_t)dt_shard_state_bytes(shard) * elems;
}

int64_t dt_shard_frozen_bytes(const dt_shard *shard)
{
    int64_t elems = 0;

    for (int unit = 0; unit < shard->model->unit_count; unit++)
        elems += shard->units[unit].frozen_elems;
    return (int64_t)dt_dtype_bytes(shard->model->config.dtype) * elems;
}

/* --- tables */

/* Merges with the previous run if possible: the gap between two parameters contains zeros, which
 * every optimizer keeps zero. */
static void add_run(dt_shard *shard, int param_index, int64_t start, int64_t elems)
{
    const dt_param *param = &shard->model->params[param_index];
    dt_shard_run *last = shard->run_count > 0 ? &shard->runs[shard->run_count - 1] : NULL;
    dt_shard_run run = {.unit = param->unit,
                        .param = param_index,
                        .start_elems = start,
                        .elems = elems,
                        .group = group_of(shard, param)};

    if (last != NULL && last->unit == run.unit && last->group == run.group &&
        run.group != DT_GROUP_MATRIX) {
        last->elems = start + elems - last->start_elems;
        return;
    }
    for (int s = 0; s < states_of(shard, param); s++)
        run.state_start[s] =
            all_have(shard, s) ? start : state_start(shard, run.unit, s, param_index);
    shard->runs[shard->run_count++] = run;
}

static dt_box whole_of(const dt_param *param)
{
    return dt_box_whole(param->dim, param->ndim);
}

/* Piece p of what the rank holds of a parameter: a box of the parameter, whose elements are adjacent
 * in the rank's memory, from *first on. */
static dt_box piece_of(int64_t *first, const dt_param *param, int p)
{
    const dt_param_held *held = &param->held;
    dt_box box = whole_of(param);
    int d = held->cut_dim;

    *first = p * (held->elems / held->parts);
    if (d >= 0) {
        box.size[d] = held->dim[d] / held->parts;
        box.start[d] = p * (param->dim[d] / held->parts) + held->start;
    }
    return box;
}

/* Adds a slice of a parameter, which is at `at` in the rank's slice, `after` elements after the start of the
 * parameter's part in it. */
static dt_status add_chunk(dt_shard *shard, int param, const dt_slice *slice, int64_t at,
                           int64_t after, dt_error *err)
{
    int unit = shard->model->params[param].unit;
    const dt_shard_unit *own = &shard->units[unit];
    dt_state_chunk *chunk = &shard->chunks[shard->chunk_count++];
    dt_status st = DT_OK;

    *chunk = (dt_state_chunk){.param = param, .slice = *slice};
    if (!shard->model->params[param].trainable) {
        dt_dtype dtype = shard->model->config.dtype;
        unsigned char *data = own->frozen;

        chunk->frozen =
            dt_tensor_1d(data + (size_t)at * dt_dtype_bytes(dtype), dtype, slice->elems);
        if (shard->model->params[param].in_base)
            return DT_OK;
        return host_mirror_add_typed(&shard->host_mirror, &chunk->value, &chunk->frozen, err);
    }
    DT_TRY(
        host_mirror_add(&shard->host_mirror, &chunk->value, own->master + at, slice->elems, err));
    for (int s = 0; s < states_of(shard, &shard->model->params[param]); s++) {
        dt_tensor state = state_at(
            shard, unit, s, all_have(shard, s) ? at : state_start(shard, unit, s, param) + after,
            slice->elems);

        DT_TRY(host_mirror_add_typed(&shard->host_mirror, &chunk->state[s], &state, err));
    }
out:
    return st;
}

/* Adds the chunks of a parameter: one for each piece that is in the slice. */
static dt_status add_chunks(dt_shard *shard, int index, dt_error *err)
{
    const dt_param *param = &shard->model->params[index];
    int64_t first, end, at, start;
    dt_status st = DT_OK;

    if (!dt_shard_part_in_slice(&first, &end, &at, shard, param))
        return DT_OK;
    for (int p = 0; p < param->held.parts; p++) {
        dt_box box = piece_of(&start, param, p);
        int64_t begin = first > start ? first : start, stop = start + dt_box_elems(&box);
        dt_slice slice = {box, begin - start, (end < stop ? end : stop) - begin};

        if (slice.elems > 0)
            DT_TRY(add_chunk(shard, index, &slice, at + begin - first, begin - first, err));
    }
out:
    return st;
}

static dt_status add_all_chunks(dt_shard *shard, bool saved, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < shard->model->param_count; i++) {
        const dt_param *param = &shard->model->params[i];

        if ((param->held.counted && !param->in_base) == saved)
            DT_TRY(add_chunks(shard, i, err));
    }
out:
    return st;
}

dt_status dt_shard_make_tables(dt_shard *shard, bool with_chunks, dt_error *err)
{
    int64_t first, end, at;
    dt_status st = DT_OK;

    for (int i = 0; i < shard->model->param_count; i++)
        if (shard->model->params[i].trainable &&
            dt_shard_part_in_slice(&first, &end, &at, shard, &shard->model->params[i]))
            add_run(shard, i, at, end - first);
    if (!with_chunks)
        return DT_OK;
    DT_TRY(add_all_chunks(shard, true, err));
    shard->counted_chunks = shard->chunk_count;
    DT_TRY(add_all_chunks(shard, false, err));
out:
    return st;
}

bool dt_shard_held_part(const dt_shard *shard, int index, dt_held_part *out)
{
    const dt_param *param = &shard->model->params[index];
    const dt_shard_unit *own = &shard->units[param->unit];
    dt_dtype dtype = shard->model->config.dtype;
    int64_t first, end, at;

    *out = (dt_held_part){0};
    if (!dt_shard_part_in_slice(&first, &end, &at, shard, param))
        return false;
    out->first = first;
    out->elems = end - first;
    if (!param->trainable) {
        out->frozen = dt_tensor_1d(
            (unsigned char *)own->frozen + (size_t)at * dt_dtype_bytes(dtype), dtype, end - first);
        return true;
    }
    out->value = own->master + at;
    out->grad = own->grad + at;
    for (int s = 0; s < states_of(shard, param); s++)
        out->state[s] =
            state_at(shard, param->unit, s,
                     all_have(shard, s) ? at : state_start(shard, param->unit, s, index), 0)
                .data;
    out->state_dtype = dt_optimizer_state_dtype(&shard->options);
    return true;
}

dt_status dt_shard_export(dt_shard *shard, const dt_state_chunk **chunks, int *count, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_from_device(&shard->host_mirror, err));
    *chunks = shard->chunks;
    *count = shard->counted_chunks;
out:
    return st;
}

dt_status dt_shard_import(dt_shard *shard, const dt_state_chunk **chunks, int *count, dt_error *err)
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
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_hold(&shard->host_mirror, err));
    for (int i = 0; i < shard->chunk_count; i++) {
        const dt_state_chunk *chunk = &shard->chunks[i];
        dt_box box = whole_of(&shard->model->params[chunk->param]);
        dt_slice whole = dt_slice_whole(&box);

        if (chunk->value == NULL)
            continue; /* read from the files of the base */
        for (dt_overlap run = dt_overlap_of(&chunk->slice, &whole); dt_overlap_next(&run);)
            dt_model_init_range(chunk->value + run.at_a, shard->model, chunk->param, run.at_b,
                                run.elems, seed);
    }
    DT_TRY(dt_host_mirror_to_device(&shard->host_mirror, err));
out:
    return st;
}

dt_status dt_shard_refresh(dt_shard *shard, dt_error *err)
{
    dt_device *device = shard->model->device;
    dt_status st = DT_OK;

    for (int unit = 0; unit < shard->model->unit_count; unit++) {
        const dt_shard_unit *slice = &shard->units[unit];
        dt_tensor master = dt_tensor_1d(slice->master, DT_F32, slice->elems);
        dt_tensor copy = dt_tensor_1d(slice->copy, shard->model->config.dtype, slice->elems);

        if (copy.data != NULL && slice->elems > 0)
            DT_TRY(device->ops->cast(device, &copy, &master, err));
    }
out:
    return st;
}

dt_optimizer_part dt_shard_part_of(const dt_shard *shard, const dt_shard_run *run)
{
    const dt_shard_unit *slice = &shard->units[run->unit];
    dt_dtype dtype = shard->model->config.dtype;
    dt_optimizer_part part = {
        .param = dt_tensor_1d(slice->master + run->start_elems, DT_F32, run->elems),
        .grad = dt_tensor_1d(slice->grad + run->start_elems, DT_F32, run->elems),
        .copy = dt_tensor_1d(NULL, dtype, run->elems),
        .states = states_of(shard, &shard->model->params[run->param]),
    };

    if (slice->copy != NULL)
        part.copy.data = (char *)slice->copy + (size_t)run->start_elems * dt_dtype_bytes(dtype);
    for (int s = 0; s < part.states; s++)
        part.state[s] = state_at(shard, run->unit, s, run->state_start[s], run->elems);
    return part;
}

void dt_shard_leave_model(dt_model *model)
{
    model->hooks = NULL;
    for (int unit = 0; unit < model->unit_count; unit++) {
        model->weights[unit] = NULL;
        model->frozen[unit] = NULL;
        model->grads[unit] = NULL;
    }
}
