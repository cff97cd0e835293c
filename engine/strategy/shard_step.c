/* shard_step: the optimizer's step over a rank's part: the norm, whole matrices (Muon), and all else. */
#include "engine/strategy/strategy_int.h"
#include "recipes/cost/matrices.h"

/* shard_matrices: updates matrices whose optimizer step needs the whole matrix (Muon). Every rank turns
 * the gradients of its slices into momentum directions, some rank shapes (orthogonalizes) each direction,
 * and every rank applies its part.
 *
 * If slices are parts of units, a unit's directions are gathered, and a rank shapes those of which it
 * holds a part. If slices are whole units, every rank has all directions: each shapes its share
 * (recipes/cost/matrices.h) and broadcasts it while it shapes the next. The result has the same bits
 * whichever rank shapes a matrix.
 */

static bool is_matrix(const dt_shard_run *run)
{
    return run->group == DT_GROUP_MATRIX;
}

static const dt_param *param_of(const dt_shard *shard, const dt_shard_run *run)
{
    return &shard->model->params[run->param];
}

static dt_status direct_matrices(dt_shard *shard, const dt_optimizer_factors *factors,
                                 dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < shard->run_count; i++) {
        dt_optimizer_part part = dt_shard_part_of(shard, &shard->runs[i]);

        if (is_matrix(&shard->runs[i]))
            DT_TRY(shard->optimizer->matrices->direct(shard->model->device, &part, factors, err));
    }
out:
    return st;
}

/* Shape one matrix. `whole`: the unit's directions. */
static dt_status shape(dt_shard *shard, const dt_shard_run *run, float *whole, dt_error *err)
{
    const dt_param *param = param_of(shard, run);
    dt_tensor matrix =
        dt_tensor_2d(whole + param->offset_elems, DT_F32, param->dim[0], param->dim[1]);

    return shard->optimizer->matrices->shape(shard->model->device, &shard->options, &matrix,
                                             dt_shard_work_dtype(shard), shard->work, err);
}

static dt_status apply(dt_shard *shard, const dt_shard_run *run, float *whole,
                       const dt_optimizer_factors *factors, dt_error *err)
{
    dt_optimizer_part part = dt_shard_part_of(shard, run);

    part.grad.data = whole + shard->units[run->unit].start_elems + run->start_elems;
    return shard->optimizer->matrices->apply(shard->model->device, &part, factors, err);
}

/* --- parts of units */

static bool has_matrices(const dt_shard *shard, int unit)
{
    const dt_unit *of = &shard->model->units[unit];

    for (int i = 0; i < of->param_count; i++)
        if (dt_param_is_matrix(&shard->model->params[of->first_param + i]) &&
            shard->model->params[of->first_param + i].trainable)
            return true;
    return false;
}

static dt_status step_gathered(dt_shard *shard, const dt_optimizer_factors *factors, dt_error *err)
{
    dt_status st = DT_OK;

    for (int unit = 0; unit < shard->model->unit_count; unit++) {
        float *whole;

        if (!has_matrices(shard, unit))
            continue;
        /* collective: all ranks call it, even without a part of the unit */
        DT_TRY(shard->gather(shard->gather_self, unit, &whole, err));
        for (int i = 0; i < shard->run_count; i++) {
            const dt_shard_run *run = &shard->runs[i];

            if (run->unit != unit || !is_matrix(run))
                continue;
            DT_TRY(shape(shard, run, whole, err));
            DT_TRY(apply(shard, run, whole, factors, err));
        }
    }
out:
    return st;
}

/* --- whole units */

static double flops_of(const dt_shard *shard, const dt_shard_run *run)
{
    const dt_param *param = param_of(shard, run);

    return is_matrix(run) ? dt_shard_shaping(shard)->flops(param->dim[0], param->dim[1]) : 0;
}

static dt_status shape_and_share(dt_shard *shard, dt_error *err)
{
    const dt_shard_peers *peers = &shard->peers;
    double all = 0, before = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < shard->run_count; i++)
        all += flops_of(shard, &shard->runs[i]);
    for (int i = 0; i < shard->run_count; i++) {
        const dt_shard_run *run = &shard->runs[i];
        float *whole = shard->units[run->unit].grad;
        double flops = flops_of(shard, run);
        int64_t owner = 0;

        if (!is_matrix(run))
            continue;
        if (peers->count > 1)
            owner = dt_matrix_owner(before, flops, all, peers->count);
        before += flops;
        if (owner == peers->rank)
            DT_TRY(shape(shard, run, whole, err));
        if (peers->count > 1)
            DT_TRY(peers->give(peers->self, whole + run->start_elems, run->elems, owner, err));
    }
    if (peers->count > 1)
        DT_TRY(peers->wait(peers->self, err));
out:
    return st;
}

static dt_status step_held(dt_shard *shard, const dt_optimizer_factors *factors, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(shape_and_share(shard, err));
    for (int i = 0; i < shard->run_count; i++) {
        const dt_shard_run *run = &shard->runs[i];

        if (is_matrix(run))
            DT_TRY(apply(shard, run, shard->units[run->unit].grad, factors, err));
    }
out:
    return st;
}

/* Update the matrices, with this step's factors. */
static dt_status shard_step_matrices(dt_shard *shard, dt_error *err)
{
    const dt_optimizer_factors *factors =
        (const dt_optimizer_factors *)shard->factors.data + DT_GROUP_MATRIX;
    dt_status st = DT_OK;

    DT_TRY(direct_matrices(shard, factors, err));
    DT_TRY(shard->gather != NULL ? step_gathered(shard, factors, err)
                                 : step_held(shard, factors, err));
out:
    return st;
}

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
        if (!param->trainable || !param->held.summed ||
            !dt_shard_part_in_slice(&first, &end, &at, shard, param))
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
    if (dt_tensor_elems(&grads) == 0)
        return DT_OK;
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

        if (param->trainable && param->held.counted &&
            dt_shard_part_in_slice(&first, &end, &at, shard, param))
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
    dt_host_mirror_release(&shard->host_mirror); /* of the last export */
    DT_TRY(send_factors(shard, args, err));
    DT_TRY(dt_graph_cache_run(shard->graph_cache, &ops, err));
    if (shard->optimizer->matrices != NULL)
        DT_TRY(shard_step_matrices(shard, err));
out:
    return st;
}
