#include "engine/optim/schedule.h"

#include <math.h>

#include "base/banned.h"

#define PI 3.14159265358979323846

/* Period i of `length` steps, `done` of which are over. */
typedef struct period {
    double length, done;
    double number;
} period;

static period find_period(double t, double first_length, double mult)
{
    period p = {first_length, t, 0};

    if (mult == 1) { /* by division: a run may have very many equal periods */
        p.number = floor(t / first_length);
        p.done = t - p.number * first_length;
        return p;
    }
    while (p.done >= p.length && p.length >= 1) { /* shrinking periods end below one step */
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

double dt_schedule_lr(const dt_recipe *recipe, int64_t step)
{
    int64_t warmup = recipe->schedule.warmup_steps;
    double from = recipe->schedule.warmup_init_lr, lr = recipe->optimizer.lr;

    if (step < warmup)
        return from + (lr - from) * (double)step / (double)warmup;
    switch (recipe->schedule.kind) {
    case DT_SCHEDULE_COSINE:
        return cosine(recipe, step - warmup);
    default:
        break;
    }
    return lr;
}
