/* optimizer_factors: ops.h's optimizer formulas with what does not depend on the element worked out
 * once, in double, and the step of one element. Every backend's loop is around these; the factors
 * are made on the host and read where the op runs, in the device's memory.
 */
#ifndef DT_ENGINE_OPTIMIZER_FACTORS_H
#define DT_ENGINE_OPTIMIZER_FACTORS_H

#include <math.h>

#include "engine/ops/ops.h"

#ifdef __CUDACC__
#define DT_STEP_FN static __host__ __device__ inline
#else
#define DT_STEP_FN static inline
#endif

typedef struct dt_optimizer_factors {
    float grad_scale;
    float coupled; /* weight decay that is added to the gradient */
    float decay;   /* 1 - lr * decay, where it is not */
    /* adamw, adam: p -= step_size * m / (sqrt(v) * v_scale + eps) covers both variants */
    float keep_m, take_m, keep_v, take_v, step_size, v_scale, eps;
    /* sgd */
    float lr, momentum;
    bool first, nesterov;
} dt_optimizer_factors;

static inline dt_optimizer_factors dt_optimizer_factors_of(const dt_optimizer_args *args)
{
    double step = (double)args->step, decay = args->weight_decay;
    double correct_m = 1.0 - pow(args->beta1, step);
    double correct_v = sqrt(1.0 - pow(args->beta2, step));
    bool coupled = args->kind != DT_OPTIMIZER_ADAMW;
    bool fairseq = args->variant == DT_OPTIMIZER_FAIRSEQ;
    dt_optimizer_factors f;

    f.grad_scale = (float)args->grad_scale;
    f.coupled = coupled ? (float)decay : 0.0f;
    f.decay = coupled ? 1.0f : (float)(1.0 - args->lr * decay);
    f.keep_m = (float)args->beta1;
    f.take_m = (float)(1.0 - args->beta1);
    f.keep_v = (float)args->beta2;
    f.take_v = (float)(1.0 - args->beta2);
    f.step_size = (float)(fairseq ? args->lr * correct_v / correct_m : args->lr / correct_m);
    f.v_scale = fairseq ? 1.0f : (float)(1.0 / correct_v);
    f.eps = (float)args->eps;
    f.lr = (float)args->lr;
    f.momentum = (float)args->momentum;
    f.first = args->step == 1;
    f.nesterov = args->nesterov;
    return f;
}

DT_STEP_FN void dt_step_adam(float *p, float *m, float *v, float grad,
                             const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale + f->coupled * *p;

    *m = f->keep_m * *m + f->take_m * g;
    *v = f->keep_v * *v + f->take_v * g * g;
    *p = f->decay * *p - f->step_size * *m / (sqrtf(*v) * f->v_scale + f->eps);
}

DT_STEP_FN void dt_step_momentum(float *p, float *m, float grad, const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale + f->coupled * *p;

    *m = f->first ? g : f->momentum * *m + g;
    *p -= f->lr * (f->nesterov ? g + f->momentum * *m : *m);
}

DT_STEP_FN void dt_step_plain(float *p, float grad, const dt_optimizer_factors *f)
{
    *p -= f->lr * (grad * f->grad_scale + f->coupled * *p);
}

#endif
