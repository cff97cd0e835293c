/* adamw: one optimizer step over a flat buffer, and the parameter's copy in the compute type, in
 * one pass over memory.
 *
 * Formula    ops.h. The bias corrections are taken in double once; elements are fp32.
 * Bytes      reads 16, writes 12 (and 2 for a bf16 copy) per parameter: memory is its limit
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

typedef struct factors {
    float grad_scale, keep_m, take_m, keep_v, take_v;
    float decay;        /* 1 - lr * weight_decay */
    float step_size;    /* lr / (1 - beta1^step) */
    float v_scale, eps; /* 1 / sqrt(1 - beta2^step) */
} factors;

static factors factors_of(const dt_optimizer_args *args)
{
    double step = (double)args->step;
    factors f = {.grad_scale = (float)args->grad_scale,
                 .keep_m = (float)args->beta1,
                 .take_m = (float)(1.0 - args->beta1),
                 .keep_v = (float)args->beta2,
                 .take_v = (float)(1.0 - args->beta2),
                 .decay = (float)(1.0 - args->lr * args->weight_decay),
                 .step_size = (float)(args->lr / (1.0 - pow(args->beta1, step))),
                 .v_scale = (float)(1.0 / sqrt(1.0 - pow(args->beta2, step))),
                 .eps = (float)args->eps};
    return f;
}

static void step_row(float *restrict p, float *restrict m, float *restrict v,
                     const float *restrict grad, int64_t n, factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float g = grad[i] * f.grad_scale;

        m[i] = f.keep_m * m[i] + f.take_m * g;
        v[i] = f.keep_v * v[i] + f.take_v * g * g;
        p[i] = f.decay * p[i] - f.step_size * m[i] / (sqrtf(v[i]) * f.v_scale + f.eps);
    }
}

dt_status DT_CPU_NAME(optimizer_step)(dt_device *device, dt_tensor *param, dt_tensor *copy,
                                      dt_tensor *m, dt_tensor *v, const dt_tensor *grad,
                                      const dt_optimizer_args *args, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(param);
    bool copies = copy != NULL && copy->data != NULL;
    factors f = factors_of(args);
    float *p = param->data;

    DT_ASSERT(args->step >= 1 && dt_tensor_elems(grad) == elems);
    DT_ASSERT(param->dtype == DT_F32 && m->dtype == DT_F32 && v->dtype == DT_F32 &&
              grad->dtype == DT_F32);
    if (copies)
        DT_TRY(dt_row_check(copy, "adamw", err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems * 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);

            step_row(p + i, (float *)m->data + i, (float *)v->data + i,
                     (const float *)grad->data + i, n, f);
            if (!copies)
                continue;
            if (copy->dtype == DT_F32)
                memcpy((float *)copy->data + i, p + i, (size_t)n * sizeof *p);
            else
                dt_row_narrow((uint16_t *)copy->data + i, p + i, n);
        }
    }
out:
    return st;
}
