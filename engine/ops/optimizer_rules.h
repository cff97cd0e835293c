/* optimizer_rules: defines the optimizer step of one element, which the loops of all backends call, and its factors,
 * which the host computes (engine/optim) and the op reads on the device.
 *
 * A rule is a line of DT_OPTIMIZER_RULES and a function (p, m, v, grad, factors): p is the parameter, m and v are its
 * states; a rule with fewer than two states gets NULL for the others.
 * States in bf16 are widened for a step and rounded after it, up or down at random: with the probability of their
 * distance, so that no change is lost on average, however small it is beside the state. The random numbers are a
 * function of the step and of the element's place: a repeated step gives the same bits.
 */
#ifndef DT_ENGINE_OPTIMIZER_RULES_H
#define DT_ENGINE_OPTIMIZER_RULES_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DT_STEP_FN static __host__ __device__ inline
#else
#define DT_STEP_FN static inline
#endif

/* X(RULE, states, function) */
#define DT_OPTIMIZER_RULES(X)        \
    X(ADAM, 2, dt_step_adam)         \
    X(MOMENTUM, 1, dt_step_momentum) \
    X(PLAIN, 0, dt_step_plain)       \
    X(LION, 1, dt_step_lion)         \
    X(DIRECT, 1, dt_step_direct)     \
    X(APPLY, 0, dt_step_apply)

#define DT_OPTIMIZER_RULE_ENUM(RULE, states, step) DT_RULE_##RULE,
typedef enum dt_optimizer_rule {
    DT_OPTIMIZER_RULES(DT_OPTIMIZER_RULE_ENUM) DT_OPTIMIZER_RULE_COUNT
} dt_optimizer_rule;

/* The factors of one step; those that the rule does not use are 0. */
typedef struct dt_optimizer_factors {
    float grad_scale;
    float coupled; /* weight decay that is added to the gradient */
    float decay;   /* 1 - lr * decay, for decoupled weight decay */
    /* adam: p -= step_size * m / (sqrt(v) * v_scale + eps) covers both variants */
    float keep_m, take_m, keep_v, take_v, step_size, v_scale, eps;
    float lr, momentum;
    bool first, nesterov;
    uint32_t draw; /* number of the step: what states in bf16 are rounded by */
} dt_optimizer_factors;

DT_STEP_FN float dt_step_widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;

    __builtin_memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Returns 32 random bits: the lower half is for m, the upper one for v. The factors are the digits of pi and e. */
DT_STEP_FN uint32_t dt_step_random(uint32_t element, uint32_t draw)
{
    uint32_t x = element + draw * 0x9e3779b9u;

    x = (x ^ x >> 16) * 0x243f6a89u;
    x = (x ^ x >> 15) * 0xb7e15163u;
    return x ^ x >> 16;
}

/* Rounds to bf16; random: 16 bits. A NaN stays one. */
DT_STEP_FN uint16_t dt_step_narrow(float x, uint32_t random)
{
    uint32_t bits;

    __builtin_memcpy(&bits, &x, sizeof(bits));
    if ((bits & 0x7fffffffu) >= 0x7f800000u)
        return (uint16_t)(bits >> 16 | ((bits & 0xffffu) != 0 ? 0x40u : 0u));
    return (uint16_t)((bits + random) >> 16);
}

DT_STEP_FN void dt_step_adam(float *p, float *m, float *v, float grad,
                             const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale + f->coupled * *p;

    *m = f->keep_m * *m + f->take_m * g;
    *v = f->keep_v * *v + f->take_v * g * g;
    *p = f->decay * *p - f->step_size * *m / (sqrtf(*v) * f->v_scale + f->eps);
}

DT_STEP_FN void dt_step_momentum(float *p, float *m, float *v, float grad,
                                 const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale + f->coupled * *p;

    *m = f->first ? g : f->momentum * *m + g;
    *p -= f->lr * (f->nesterov ? g + f->momentum * *m : *m);
}

DT_STEP_FN void dt_step_plain(float *p, float *m, float *v, float grad,
                              const dt_optimizer_factors *f)
{
    *p -= f->lr * (grad * f->grad_scale + f->coupled * *p);
}

DT_STEP_FN void dt_step_lion(float *p, float *m, float *v, float grad,
                             const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale, way = f->momentum * *m + (1.0f - f->momentum) * g;

    *p = f->decay * *p - f->lr * (float)((way > 0.0f) - (way < 0.0f));
    *m = f->keep_m * *m + f->take_m * g;
}

/* Turns the gradient in `grad`, which is also `p`, into the direction of a step, in place. */
DT_STEP_FN void dt_step_direct(float *p, float *m, float *v, float grad,
                               const dt_optimizer_factors *f)
{
    float g = grad * f->grad_scale;

    *m += f->take_m * (g - *m);
    *p = f->nesterov ? *m - f->take_m * (*m - g) : *m;
}

/* Moves the parameter along a given direction, which `grad` holds. */
DT_STEP_FN void dt_step_apply(float *p, float *m, float *v, float grad,
                              const dt_optimizer_factors *f)
{
    *p = f->decay * *p - f->lr * grad;
}

#endif
