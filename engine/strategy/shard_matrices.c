/* shard_matrices: updates matrices whose optimizer step needs the whole matrix (Muon). Every rank turns
 * the gradients of its slices into momentum directions, some rank shapes (orthogonalizes) each direction,
 * and every rank applies its part.
 *
 * If slices are parts of units, a unit's directions are gathered, and a rank shapes those of which it
 * holds a part. If slices are whole units, every rank has all directions: each shapes its share
 * (recipes/cost/matrices.h) and broadcasts it while it shapes the next. The result has the same bits
 * whichever rank shapes a matrix.
 */
#include "engine/strategy/shard_int.h"
#include "recipes/cost/matrices.h"

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
        if (dt_param_is_matrix(&shard->model->params[of->first_param + i]))
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

dt_status dt_shard_step_matrices(dt_shard *shard, dt_error *err)
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
