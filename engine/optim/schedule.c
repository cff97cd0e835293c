/* schedule: computes the learning rate, the clip factor and the loss scale of a step. */
#include "engine/optim/schedule.h"

#include <math.h>

#include "base/error.h"

/* --- the learning rate */

#define PI 3.14159265358979323846

/* Position in a schedule with periods: period `number` of `length` steps, `done` of which are over. */
typedef struct period {
    double length, done;
    double number;
} period;

static period find_period(double t, double first_length, double mult)
{
    period p = {first_length, t, 0};

    if (mult == 1) { /* by division: a run can have very many equal periods */
        p.number = floor(t / first_length);
        p.done = t - p.number * first_length;
        return p;
    }
    while (p.done >= p.length &&
           p.length >= 1) { /* stops when shrinking periods become shorter than a step */
        p.done -= p.length;
        p.length *= mult;
        p.number++;
    }
    return p;
}

static double cosine(const dt_recipe *recipe, int64_t t)
{
    int64_t first_length = recipe->schedule.period_steps;
    double shrink, low, high;
    period p;

    if (first_length <= 0)
        first_length = recipe->schedule.steps - recipe->schedule.warmup_steps;
    if (first_length < 1)
        first_length = 1;
    p = find_period((double)t, (double)first_length, recipe->schedule.period_mult);
    shrink = pow(recipe->schedule.shrink, p.number);
    low = recipe->schedule.min_lr * shrink;
    high = recipe->optimizer.lr * shrink;
    if (p.done >= p.length)
        return low;
    return low + 0.5 * (high - low) * (1 + cos(PI * p.done / p.length));
}

static double inverse_sqrt(const dt_recipe *recipe, int64_t step)
{
    double warmup = recipe->schedule.warmup_steps > 0 ? (double)recipe->schedule.warmup_steps : 1;
    double lr = recipe->optimizer.lr * sqrt(warmup / fmax((double)step, warmup));

    return fmax(lr, recipe->schedule.min_lr);
}

/* Interpolate from lr to min_lr over `length` steps, of which `left` remain. */
static double fall(const dt_recipe *recipe, int64_t left, int64_t length, double power)
{
    double share = left > 0 && length > 0 ? (double)left / (double)length : 0;

    return recipe->schedule.min_lr +
           (recipe->optimizer.lr - recipe->schedule.min_lr) * pow(share, power);
}

static double polynomial(const dt_recipe *recipe, int64_t step, double power)
{
    int64_t steps = recipe->schedule.steps;

    return fall(recipe, steps - step, steps - recipe->schedule.warmup_steps, power);
}

static double stable_then_decay(const dt_recipe *recipe, int64_t step)
{
    int64_t steps = recipe->schedule.steps, most = steps - recipe->schedule.warmup_steps;
    int64_t decay = recipe->schedule.decay_steps;

    if (decay == 0)
        decay = steps / 10 > 0 ? steps / 10 : 1;
    if (decay > most)
        decay = most;
    if (step < steps - decay)
        return recipe->optimizer.lr;
    return fall(recipe, steps - step, decay, 1);
}

double dt_schedule_lr(const dt_recipe *recipe, int64_t step)
{
    int64_t warmup = recipe->schedule.warmup_steps;
    double from = recipe->schedule.warmup_init_lr, lr = recipe->optimizer.lr;

    if (step < warmup)
        return from + (lr - from) * (double)step / (double)warmup;
    switch (recipe->schedule.kind) {
    case DT_SCHEDULE_COSINE:
        return cosine(recipe, step - warmup);
    case DT_SCHEDULE_INVERSE_SQRT:
        return inverse_sqrt(recipe, step);
    case DT_SCHEDULE_LINEAR:
        return polynomial(recipe, step, 1);
    case DT_SCHEDULE_POLYNOMIAL:
        return polynomial(recipe, step, recipe->schedule.power);
    case DT_SCHEDULE_CONSTANT:
        return lr;
    case DT_SCHEDULE_WARMUP_STABLE_DECAY:
        return stable_then_decay(recipe, step);
    }
    DT_ASSERT(!"a kind of schedule that this function knows");
    return lr;
}

/* --- the norm of the gradients */

double dt_clip_factor(double norm, double max_norm)
{
    double factor;

    if (max_norm <= 0)
        return 1;
    factor = max_norm / (norm + 1e-6);
    return factor > 1 ? 1 : factor; /* the comparison is false for NaN, so NaN is returned */
}

/* --- the loss scale of fp16 */

/* far below the maximum of fp32, in case all gradients stay zero for long */
#define SCALE_MAX 0x1p60

void dt_scaler_init(dt_scaler *out, const dt_recipe *recipe)
{
    bool on = recipe->precision.kind == DT_PRECISION_FP16;

    *out = (dt_scaler){
        .on = on,
        .scale = on ? recipe->precision.loss_scale : 1,
        .floor = recipe->precision.min_loss_scale,
        .window = recipe->precision.scale_window,
    };
}

dt_status dt_scaler_step(dt_scaler *scaler, double norm, bool *skip, dt_error *err)
{
    *skip = scaler->on && !isfinite(norm);
    if (!scaler->on)
        return DT_OK;
    if (*skip) {
        scaler->scale *= 0.5;
        scaler->clean_steps = 0;
        scaler->skipped_steps++;
        if (scaler->scale < scaler->floor)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "the loss scale has fallen to %g, below 'precision.min_loss_scale' %g: "
                           "gradients overflow whatever the scale (try 'precision: bf16', or a "
                           "lower 'optimizer.lr')",
                           scaler->scale, scaler->floor);
        return DT_OK;
    }
    if (++scaler->clean_steps >= scaler->window) {
        scaler->clean_steps = 0;
        if (scaler->scale < SCALE_MAX)
            scaler->scale *= 2;
    }
    return DT_OK;
}
