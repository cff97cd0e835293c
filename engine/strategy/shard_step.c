/* shard_step: computes the gradient norm of a rank's slices and runs the optimizer over them. */
#include "engine/strategy/shard_int.h"

#define SLICES_AT_ONCE 64

/* Squares each slice separately, so that they are added in the same order on every device. */
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

static dt_tensor grads_of(const dt_shard *shard, int unit, int64_t at, int64_t elems)
{
    return dt_tensor_1d(shard->units[unit].grad + at, DT_F32, elems);
}

dt_status dt_shard_sum_terms(dt_shard *shard, const dt_strategy_state *state, dt_error *err)
{
    int64_t first, end, at, ranks = dt_tensor_ranks(&shard->model->config.tensor);
    dt_status st = DT_OK;

    for (int i = 0; i < shard->model->param_count; i++) {
        const dt_param *param = &shard->model->params[i];
        const dt_layer_peers *peers = param->held.sharers < ranks ? state->sharers : state->layer;
        dt_tensor grads;

        /* ranks that share a parameter have the same slice of it */
        if (!param->held.summed || !dt_shard_part_in_slice(&first, &end, &at, shard, param))
            continue;
        grads = grads_of(shard, param->unit, at, end - first);
        DT_TRY(peers->sum(peers->self, &grads, err));
    }
out:
    return st;
}

/* Gradients whose squares are added at once. */
typedef struct squaring {
    dt_device *device;
    dt_tensor grads[SLICES_AT_ONCE];
    int count;
    double total;
} squaring;

static dt_status square_all(squaring *of, dt_error *err)
{
    double squares[SLICES_AT_ONCE];
    dt_status st = DT_OK;

    DT_TRY(square_slices(of->device, squares, of->grads, of->count, err));
    for (int i = 0; i < of->count; i++)
        of->total += squares[i];
    of->count = 0;
out:
    return st;
}

static dt_status square(squaring *of, dt_tensor grads, dt_error *err)
{
    of->grads[of->count++] = grads;
    return of->count == SLICES_AT_ONCE ? square_all(of, err) : DT_OK;
}

/* Squares the parts of a unit that this rank counts, parameter by parameter. */
static dt_status square_counted(squaring *of, const dt_shard *shard, int unit, dt_error *err)
{
    const dt_unit *table = &shard->model->units[unit];
    int64_t first, end, at;
    dt_status st = DT_OK;

    for (int i = 0; i < table->param_count; i++) {
        const dt_param *param = &shard->model->params[table->first_param + i];

        if (param->held.counted && dt_shard_part_in_slice(&first, &end, &at, shard, param))
            DT_TRY(square(of, grads_of(shard, unit, at, end - first), err));
    }
out:
    return st;
}

dt_status dt_shard_sum_squares(dt_shard *shard, double *out, dt_error *err)
{
    bool divided = dt_tensor_ranks(&shard->model->config.tensor) > 1;
    squaring of = {.device = shard->model->device};
    dt_status st = DT_OK;

    for (int unit = 0; unit < shard->model->unit_count; unit++)
        DT_TRY(divided ? square_counted(&of, shard, unit, err)
                       : square(&of, grads_of(shard, unit, 0, shard->units[unit].elems), err));
    if (of.count > 0)
        DT_TRY(square_all(&of, err));
    *out = of.total;
out:
    return st;
}

static dt_status send_factors(dt_shard *shard, const dt_optimizer_args *args, dt_error *err)
{
    dt_optimizer_factors *sets = shard->factors.host;
    dt_optimizer_args without = *args;
    dt_status st = DT_OK;

    if (args->options.decays == DT_DECAYS_MATRICES)
        without.options.weight_decay = 0;
    DT_TRY(dt_upload_buffer_begin(&shard->factors, err));
    shard->optimizer->factors(&sets[DT_GROUP_KEPT], &without);
    shard->optimizer->factors(&sets[DT_GROUP_DECAYED], args);
    if (shard->optimizer->matrices != NULL)
        shard->optimizer->matrices->factors(&sets[DT_GROUP_MATRIX], args);
    DT_TRY(dt_upload_buffer_send(&shard->factors, err));
out:
    return st;
}

static dt_status step_runs(void *self, dt_error *err)
{
    dt_shard *shard = self;
    const dt_optimizer_factors *sets = shard->factors.data;
    dt_status st = DT_OK;

    for (int i = 0; i < shard->run_count; i++) {
        const dt_shard_run *run = &shard->runs[i];
        dt_optimizer_part part = dt_shard_part_of(shard, run);

        if (run->group != DT_GROUP_MATRIX)
            DT_TRY(shard->optimizer->step(shard->model->device, &part, &sets[run->group], err));
    }
out:
    return st;
}

/* Recordable as is: the memory of the slices is fixed, and only the factors change. */
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
    if (shard->optimizer->matrices != NULL)
        DT_TRY(dt_shard_step_matrices(shard, err));
out:
    return st;
}
