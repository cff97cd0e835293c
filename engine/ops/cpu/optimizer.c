/* optimizer: the ops of an optimizer step over flat buffers: sums, sums of squares, division by the norm,
 * the step.
 *
 * Formula    optimizer_rules.h
 * Bytes      memory bandwidth is the limit. Per parameter, adamw and adam read 16 and write 12 bytes, sgd
 *            with momentum 12 and 8, sgd without 8 and 4; a copy adds 2 or 4 written bytes
 */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"

/* reduce: computes the sum, or the sum of squares, of a whole tensor.
 *
 * The tensor is always cut into PIECES pieces, for any thread count. Each piece is summed in double by
 * one thread, and the sums of the pieces are added in order. The result therefore depends only on the
 * elements and the instruction set.
 */

#define PIECES 64

static double piece_sum(const float *x, int64_t n)
{
    double total = 0.0;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i];
    return total;
}

static double piece_sum_squares(const float *x, int64_t n)
{
    double total = 0.0;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i] * (double)x[i];
    return total;
}

static double reduce(dt_device *device, const dt_tensor *x, double (*piece)(const float *, int64_t))
{
    int64_t elems = dt_tensor_elems(x);
    double parts[PIECES], total = 0.0;

#pragma omp parallel for schedule(static) num_threads(dt_cpu_threads(device, elems))
    for (int i = 0; i < PIECES; i++) {
        int64_t begin = elems * i / PIECES, end = elems * (i + 1) / PIECES;
        parts[i] = piece((const float *)x->data + begin, end - begin);
    }
    for (int i = 0; i < PIECES; i++)
        total += parts[i];
    return total;
}

dt_status DT_CPU_NAME(sum_squares)(dt_device *device, double *out, const dt_tensor *x,
                                   dt_error *err)
{
    DT_ASSERT(x->dtype == DT_F32);
    *out = reduce(device, x, piece_sum_squares);
    return DT_OK;
}

dt_status DT_CPU_NAME(sum)(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    DT_ASSERT(x->dtype == DT_F32);
    *out = reduce(device, x, piece_sum);
    return DT_OK;
}

/* normalize: computes out = x / max(|x|, eps). The norm is computed as in sum_squares, so it does
 * not depend on the thread count. */

dt_status DT_CPU_NAME(normalize)(dt_device *device, dt_tensor *out, const dt_tensor *x, double eps,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    const float *in = x->data;
    dt_cpu_scratch scratch;
    double squares;
    float factor;

    DT_ASSERT(x->dtype == DT_F32 && dt_tensor_elems(out) == elems);
    DT_TRY(dt_row_check(out, "normalize", err));
    DT_TRY(DT_CPU_NAME(sum_squares)(device, &squares, x, err));
    factor = (float)(1.0 / fmax(sqrt(squares), eps));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *row = dt_row_open(out, i, mine);

#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                row[l] = factor * in[i + l];
            dt_row_close(out, i, n, row);
        }
    }
out:
    return st;
}

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

static bool is_state(const dt_tensor *x, dt_optimizer_rule rule, int64_t elems)
{
    return is_whole(x, elems) ||
           (rule == DT_RULE_ADAM && given(x) && x->dtype == DT_BF16 && dt_tensor_elems(x) == elems);
}

/* Returns state s from element i on, n elements; NULL if the rule does not have it. One in bf16 is widened into the
 * thread's `mine`. */
static float *open_state(const dt_tensor *states, int s, dt_optimizer_rule rule, int64_t i,
                         int64_t n, float *mine)
{
    if (s >= rules[rule].states)
        return NULL;
    if (states[s].dtype == DT_F32)
        return (float *)states[s].data + i;
    mine += s * DT_ROW_CHUNK;
    dt_bf16_widen_row(mine, (const uint16_t *)states[s].data + i, n);
    return mine;
}

/* Rounds both states of elements i .. i+n-1 from `mine`. */
static void round_states(const dt_tensor *states, int64_t i, int64_t n, const float *mine,
                         uint32_t draw)
{
    uint16_t *restrict m = (uint16_t *)states[0].data + i, *restrict v =
                                                               (uint16_t *)states[1].data + i;

#pragma omp simd
    for (int64_t l = 0; l < n; l++) {
        uint32_t random = dt_step_random((uint32_t)(i + l), draw);

        m[l] = dt_step_narrow(mine[l], random & 0xffffu);
        v[l] = dt_step_narrow(mine[DT_ROW_CHUNK + l], random >> 16);
    }
}

dt_status DT_CPU_NAME(optimizer_step)(dt_device *device, dt_optimizer_rule rule, dt_tensor *param,
                                      dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                      const dt_optimizer_factors *factors, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(param);
    bool copies = given(copy), rounds = rules[rule].states > 0 && states[0].dtype == DT_BF16;
    dt_optimizer_factors f = *factors;
    dt_cpu_scratch scratch;

    DT_ASSERT(is_whole(param, elems) && is_whole(grad, elems));
    for (int s = 0; s < rules[rule].states; s++)
        DT_ASSERT(is_state(&states[s], rule, elems) && states[s].dtype == states[0].dtype);
    if (copies)
        DT_TRY(dt_row_check(copy, "optimizer", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, rounds ? 2 * DT_ROW_CHUNK : 0, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems * 4))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            float *p = (float *)param->data + i;
            const float *g = (const float *)grad->data + i;

            rules[rule].row(p, open_state(states, 0, rule, i, n, mine),
                            open_state(states, 1, rule, i, n, mine), g, n, f);
            if (rounds)
                round_states(states, i, n, mine, f.draw);
            if (copies && copy->dtype == DT_F32)
                memcpy((float *)copy->data + i, p, (size_t)n * sizeof *p);
            else if (copies)
                dt_row_narrow((uint16_t *)copy->data + i, copy->dtype, p, n);
        }
    }
out:
    return st;
}
