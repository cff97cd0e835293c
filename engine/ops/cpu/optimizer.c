/* optimizer: one step over a flat buffer, and the parameter's copy in the compute type, in one
 * pass over memory.
 *
 * Formula    ops.h, as optimizer_factors.h computes it
 * Bytes      adamw and adam read 16 and write 12 a parameter (and 2 or 4 for a copy), sgd with
 *            momentum 12 and 8, without 8 and 4: memory is the limit
 */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"
#include "engine/ops/optimizer_factors.h"

#include "base/banned.h"

static void adam_row(float *restrict p, float *restrict m, float *restrict v,
                     const float *restrict grad, int64_t n, dt_optimizer_factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dt_step_adam(&p[i], &m[i], &v[i], grad[i], &f);
}

static void momentum_row(float *restrict p, float *restrict m, const float *restrict grad,
                         int64_t n, dt_optimizer_factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dt_step_momentum(&p[i], &m[i], grad[i], &f);
}

static void plain_row(float *restrict p, const float *restrict grad, int64_t n,
                      dt_optimizer_factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dt_step_plain(&p[i], grad[i], &f);
}

static bool given(const dt_tensor *x)
{
    return x != NULL && x->data != NULL;
}

static bool is_whole(const dt_tensor *x, int64_t elems)
{
    return given(x) && x->dtype == DT_F32 && dt_tensor_elems(x) == elems;
}

dt_status DT_CPU_NAME(optimizer_step)(dt_device *device, dt_tensor *param, dt_tensor *copy,
                                      dt_tensor *m, dt_tensor *v, const dt_tensor *grad,
                                      const dt_optimizer_factors *factors, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(param);
    bool copies = given(copy), adam = given(v), moves = given(m);
    dt_optimizer_factors f = *factors;

    DT_ASSERT(is_whole(param, elems) && is_whole(grad, elems));
    DT_ASSERT((!moves || is_whole(m, elems)) && (!adam || (moves && is_whole(v, elems))));
    if (copies)
        DT_TRY(dt_row_check(copy, "optimizer", err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems * 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *p = (float *)param->data + i;
            const float *g = (const float *)grad->data + i;

            if (adam)
                adam_row(p, (float *)m->data + i, (float *)v->data + i, g, n, f);
            else if (moves)
                momentum_row(p, (float *)m->data + i, g, n, f);
            else
                plain_row(p, g, n, f);
            if (copies && copy->dtype == DT_F32)
                memcpy((float *)copy->data + i, p, (size_t)n * sizeof *p);
            else if (copies)
                dt_row_narrow((uint16_t *)copy->data + i, copy->dtype, p, n);
        }
    }
out:
    return st;
}
