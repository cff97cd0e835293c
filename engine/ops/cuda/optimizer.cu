/* optimizer: makes one step over a flat buffer, and updates the parameters' copy in the compute type, in one
 * pass over memory (formulas: engine/ops/optimizer_rules.h).
 *
 * Bytes  memory bandwidth is the limit: per parameter, adamw reads 16 and writes 12 bytes, and 2 for a bf16 copy
 */
#include "engine/ops/cuda/cuda_int.cuh"

static constexpr int states_of(dt_optimizer_rule rule)
{
#define STATES_OF(RULE, states, step) \
    if (rule == DT_RULE_##RULE)       \
        return states;
    DT_OPTIMIZER_RULES(STATES_OF)
    return 0;
}

template <dt_optimizer_rule RULE>
__device__ inline void step_one(float *p, float *m, float *v, float grad,
                                const dt_optimizer_factors *f)
{
#define STEP_OF(OTHER, states, step) \
    if (RULE == DT_RULE_##OTHER)     \
        step(p, m, v, grad, f);
    DT_OPTIMIZER_RULES(STEP_OF)
}

template <typename T, dt_optimizer_rule RULE, bool COPIES>
__global__ void step(float *p, T *copy, float *m, float *v, const float *grad, int64_t elems,
                     const dt_optimizer_factors *factors, bool aligned, bool copy_aligned)
{
    constexpr int N = 4, STATES = states_of(RULE);
    const dt_optimizer_factors f = *factors;
    int64_t stride = (int64_t)gridDim.x * blockDim.x * N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < elems; i += stride) {
        alignas(16) float pv[N], mv[N], vv[N], gv[N];
        bool whole = aligned && i + N <= elems;

        if (whole) {
            *(float4 *)pv = *(const float4 *)(p + i);
            *(float4 *)gv = *(const float4 *)(grad + i);
            if (STATES > 0)
                *(float4 *)mv = *(const float4 *)(m + i);
            if (STATES > 1)
                *(float4 *)vv = *(const float4 *)(v + i);
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                pv[k] = p[i + k];
                gv[k] = grad[i + k];
                if (STATES > 0)
                    mv[k] = m[i + k];
                if (STATES > 1)
                    vv[k] = v[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            step_one<RULE>(&pv[k], &mv[k], &vv[k], gv[k], &f);
        if (whole) {
            *(float4 *)(p + i) = *(float4 *)pv;
            if (STATES > 0)
                *(float4 *)(m + i) = *(float4 *)mv;
            if (STATES > 1)
                *(float4 *)(v + i) = *(float4 *)vv;
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                p[i + k] = pv[k];
                if (STATES > 0)
                    m[i + k] = mv[k];
                if (STATES > 1)
                    v[i + k] = vv[k];
            }
        }
        if (COPIES) {
            dt_four<T> four;

#pragma unroll
            for (int k = 0; k < N; k++)
                four.v[k] = dt_from_float<T>(pv[k]);
            dt_four_store(copy, i, elems, copy_aligned && i + N <= elems, four);
        }
    }
}

/* Returns state s; NULL if the rule does not have it. */
static float *state_of(dt_tensor *states, int s, dt_optimizer_rule rule)
{
    return s < states_of(rule) ? (float *)states[s].data : NULL;
}

template <typename T, bool COPIES>
static void launch(dt_cuda_state *state, dt_optimizer_rule rule, dt_tensor *param, dt_tensor *copy,
                   dt_tensor *states, const dt_tensor *grad, const dt_optimizer_factors *f)
{
    int64_t elems = dt_tensor_elems(param);
    unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * 4);
    float *pv = (float *)param->data;
    float *mv = state_of(states, 0, rule), *vv = state_of(states, 1, rule);
    T *cv = COPIES ? (T *)copy->data : NULL;
    const float *gv = (const float *)grad->data;
    /* a part of a unit starts at its first parameter, at any alignment */
    bool aligned = dt_cuda_fours<float>(pv) && dt_cuda_fours<float>(mv) &&
                   dt_cuda_fours<float>(vv) && dt_cuda_fours<float>(gv);
    bool copy_aligned = dt_cuda_fours<T>(cv);

#define LAUNCH(RULE, count, function)                                                              \
    if (rule == DT_RULE_##RULE)                                                                    \
        DT_CUDA_LAUNCH((step<T, DT_RULE_##RULE, COPIES>), blocks, DT_CUDA_BLOCK, 0, state->stream, \
                       pv, cv, mv, vv, gv, elems, f, aligned, copy_aligned);
    DT_OPTIMIZER_RULES(LAUNCH)
}

dt_status dt_cuda_optimizer_step(dt_device *device, dt_optimizer_rule rule, dt_tensor *param,
                                 dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                 const dt_optimizer_factors *factors, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);

    DT_ASSERT(param->dtype == DT_F32 && grad->dtype == DT_F32 &&
              dt_tensor_elems(grad) == dt_tensor_elems(param));
    if (dt_tensor_elems(param) == 0)
        return DT_OK;
    if (copy != NULL && copy->data != NULL)
        DT_CUDA_DISPATCH(copy->dtype, "optimizer", err,
                         { launch<T, true>(state, rule, param, copy, states, grad, factors); });
    else
        launch<float, false>(state, rule, param, NULL, states, grad, factors);
    return dt_cuda_launched("optimizer", err);
}
