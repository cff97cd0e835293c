/* optimizer: makes one step over a flat buffer, and updates the parameters' copy in the compute type,
 * in one pass over memory.
 *
 * Formula    optimizer_rules.h
 * Bytes      memory bandwidth is the limit. Per parameter, adamw and adam read 16 and write 12 bytes, sgd
 *            with momentum 12 and 8, sgd without 8 and 4; a copy adds 2 or 4 written bytes
 */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

/* Defines the loop over a row for one rule, which has `states` states. */
#define ROW(RULE, states, step)                                                                 \
    static void step##_row(float *restrict p, float *restrict m, float *restrict v,             \
                           const float *grad, int64_t n, dt_optimizer_factors f)                \
    {                                                                                           \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                     \
            step(&p[i], (states) > 0 ? &m[i] : NULL, (states) > 1 ? &v[i] : NULL, grad[i], &f); \
    }
DT_OPTIMIZER_RULES(ROW)

typedef void row_fn(float *p, float *m, float *v, const float *grad, int64_t n,
                    dt_optimizer_factors f);

static const struct {
    row_fn *row;
    int states;
} rules[] = {
#define RULE_OF(RULE, states, step) [DT_RULE_##RULE] = {step##_row, states},
    DT_OPTIMIZER_RULES(RULE_OF)};

static bool given(const dt_tensor *x)
{
    return x != NULL && x->data != NULL;
}

static bool is_whole(const dt_tensor *x, int64_t elems)
{
    return given(x) && x->dtype == DT_F32 && dt_tensor_elems(x) == elems;
}

/* Returns state s from element i on; NULL if the rule does not have it. */
static float *state_at(const dt_tensor *states, int s, dt_optimizer_rule rule, int64_t i)
{
    return s < rules[rule].states ? (float *)states[s].data + i : NULL;
}

dt_status DT_CPU_NAME(optimizer_step)(dt_device *device, dt_optimizer_rule rule, dt_tensor *param,
                                      dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                      const dt_optimizer_factors *factors, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(param);
    bool copies = given(copy);
    dt_optimizer_factors f = *factors;

    DT_ASSERT(is_whole(param, elems) && is_whole(grad, elems));
    for (int s = 0; s < rules[rule].states; s++)
        DT_ASSERT(is_whole(&states[s], elems));
    if (copies)
        DT_TRY(dt_row_check(copy, "optimizer", err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems * 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *p = (float *)param->data + i;
            const float *g = (const float *)grad->data + i;

            rules[rule].row(p, state_at(states, 0, rule, i), state_at(states, 1, rule, i), g, n, f);
            if (copies && copy->dtype == DT_F32)
                memcpy((float *)copy->data + i, p, (size_t)n * sizeof *p);
            else if (copies)
                dt_row_narrow((uint16_t *)copy->data + i, copy->dtype, p, n);
        }
    }
out:
    return st;
}
