/* optimizer: one step over a flat buffer, and the parameter's copy in the compute type, in one
 * pass over memory.
 *
 * Formula    ops.h. What does not depend on the element is worked out once, in double; elements
 *            are fp32.
 * Bytes      adamw and adam read 16 and write 12 a parameter (and 2 or 4 for a copy), sgd with
 *            momentum 12 and 8, without 8 and 4: memory is the limit
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

typedef struct factors {
    float grad_scale;
    float coupled; /* weight decay that is added to the gradient */
    float decay;   /* 1 - lr * decay, where it is not */
    /* adamw, adam: p -= step_size * m / (sqrt(v) * v_scale + eps) covers both variants */
    float keep_m, take_m, keep_v, take_v, step_size, v_scale, eps;
    /* sgd */
    float lr, momentum;
    bool first, nesterov;
} factors;

static factors factors_of(const dt_optimizer_args *args)
{
    double step = (double)args->step, decay = args->weight_decay;
    double correct_m = 1.0 - pow(args->beta1, step);
    double correct_v = sqrt(1.0 - pow(args->beta2, step));
    bool coupled = args->kind != DT_OPTIMIZER_ADAMW;
    bool fairseq = args->variant == DT_OPTIMIZER_FAIRSEQ;
    factors f = {.grad_scale = (float)args->grad_scale,
                 .coupled = coupled ? (float)decay : 0.0f,
                 .decay = coupled ? 1.0f : (float)(1.0 - args->lr * decay),
                 .keep_m = (float)args->beta1,
                 .take_m = (float)(1.0 - args->beta1),
                 .keep_v = (float)args->beta2,
                 .take_v = (float)(1.0 - args->beta2),
                 .step_size =
                     (float)(fairseq ? args->lr * correct_v / correct_m : args->lr / correct_m),
                 .v_scale = fairseq ? 1.0f : (float)(1.0 / correct_v),
                 .eps = (float)args->eps,
                 .lr = (float)args->lr,
                 .momentum = (float)args->momentum,
                 .first = args->step == 1,
                 .nesterov = args->nesterov};

    return f;
}

static void adam_row(float *restrict p, float *restrict m, float *restrict v,
                     const float *restrict grad, int64_t n, factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float g = grad[i] * f.grad_scale + f.coupled * p[i];

        m[i] = f.keep_m * m[i] + f.take_m * g;
        v[i] = f.keep_v * v[i] + f.take_v * g * g;
        p[i] = f.decay * p[i] - f.step_size * m[i] / (sqrtf(v[i]) * f.v_scale + f.eps);
    }
}

static void momentum_row(float *restrict p, float *restrict m, const float *restrict grad,
                         int64_t n, factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float g = grad[i] * f.grad_scale + f.coupled * p[i];

        m[i] = f.first ? g : f.momentum * m[i] + g;
        p[i] -= f.lr * (f.nesterov ? g + f.momentum * m[i] : m[i]);
    }
}

static void plain_row(float *restrict p, const float *restrict grad, int64_t n, factors f)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        p[i] -= f.lr * (grad[i] * f.grad_scale + f.coupled * p[i]);
}

static bool is_whole(const dt_tensor *x, int64_t elems)
{
    return x != NULL && x->data != NULL && x->dtype == DT_F32 && dt_tensor_elems(x) == elems;
}

dt_status DT_CPU_NAME(optimizer_step)(dt_device *device, dt_tensor *param, dt_tensor *copy,
                                      dt_tensor *m, dt_tensor *v, const dt_tensor *grad,
                                      const dt_optimizer_args *args, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(param);
    bool copies = copy != NULL && copy->data != NULL;
    bool adam = args->kind != DT_OPTIMIZER_SGD, moves = adam || args->momentum != 0.0;
    factors f = factors_of(args);

    DT_ASSERT(args->step >= 1 && is_whole(param, elems) && is_whole(grad, elems));
    DT_ASSERT((!moves || is_whole(m, elems)) && (!adam || is_whole(v, elems)));
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
