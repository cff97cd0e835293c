/* shard_step: computes the gradient norm of a rank's slices and runs the optimizer over them. */
#include "engine/strategy/shard_int.h"

#include "base/banned.h"

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
