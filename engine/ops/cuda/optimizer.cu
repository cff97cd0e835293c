/* optimizer: one step over a flat buffer, and the parameter's copy in the compute type, in one pass
 * over memory (formulas: engine/ops/optimizer_factors.h).
 *
 * Bytes  adamw reads 16 and writes 12 a parameter, and 2 for a bf16 copy: memory is the limit
 */
#include "engine/ops/cuda/cuda_int.cuh"
#include "engine/ops/optimizer_factors.h"

enum rule { ADAM, MOMENTUM, PLAIN };

template <typename T, rule RULE, bool COPIES>
__global__ void step(float *p, T *copy, float *m, float *v, const float *grad, int64_t elems,
                     const dt_optimizer_factors *factors, bool aligned, bool copy_aligned)
{
    constexpr int N = 4;
    const dt_optimizer_factors f = *factors;
    int64_t stride = (int64_t)gridDim.x * blockDim.x * N;

    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < elems; i += stride) {
        alignas(16) float pv[N], mv[N], vv[N], gv[N];
        bool whole = aligned && i + N <= elems;

        if (whole) {
            *(float4 *)pv = *(const float4 *)(p + i);
            *(float4 *)gv = *(const float4 *)(grad + i);
            if (RULE != PLAIN)
                *(float4 *)mv = *(const float4 *)(m + i);
            if (RULE == ADAM)
                *(float4 *)vv = *(const float4 *)(v + i);
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                pv[k] = p[i + k];
                gv[k] = grad[i + k];
                if (RULE != PLAIN)
                    mv[k] = m[i + k];
                if (RULE == ADAM)
                    vv[k] = v[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (RULE == ADAM)
                dt_step_adam(&pv[k], &mv[k], &vv[k], gv[k], &f);
            else if (RULE == MOMENTUM)
                dt_step_momentum(&pv[k], &mv[k], gv[k], &f);
            else
                dt_step_plain(&pv[k], gv[k], &f);
        }
        if (whole) {
            *(float4 *)(p + i) = *(float4 *)pv;
            if (RULE != PLAIN)
                *(float4 *)(m + i) = *(float4 *)mv;
            if (RULE == ADAM)
                *(float4 *)(v + i) = *(float4 *)vv;
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                p[i + k] = pv[k];
                if (RULE != PLAIN)
                    m[i + k] = mv[k];
                if (RULE == ADAM)
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

static float *values(dt_tensor *x)
{
    return x != NULL ? (float *)x->data : NULL;
}

template <typename T, bool COPIES>
static void launch(dt_cuda_state *state, rule which, dt_tensor *param, dt_tensor *copy,
                   dt_tensor *m, dt_tensor *v, const dt_tensor *grad, const dt_optimizer_factors *f)
{
    int64_t elems = dt_tensor_elems(param);
    unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * 4);
    float *pv = (float *)param->data, *mv = values(m), *vv = values(v);
    T *cv = COPIES ? (T *)copy->data : NULL;
    const float *gv = (const float *)grad->data;
    /* a part of a unit begins where its parameter does */
    bool aligned = dt_cuda_fours<float>(pv) && dt_cuda_fours<float>(mv) &&
                   dt_cuda_fours<float>(vv) && dt_cuda_fours<float>(gv);
    bool copy_aligned = dt_cuda_fours<T>(cv);

    if (which == ADAM)
        DT_CUDA_LAUNCH((step<T, ADAM, COPIES>), blocks, DT_CUDA_BLOCK, 0, state->stream, pv, cv, mv,
                       vv, gv, elems, f, aligned, copy_aligned);
    else if (which == MOMENTUM)
        DT_CUDA_LAUNCH((step<T, MOMENTUM, COPIES>), blocks, DT_CUDA_BLOCK, 0, state->stream, pv, cv,
                       mv, vv, gv, elems, f, aligned, copy_aligned);
    else
        DT_CUDA_LAUNCH((step<T, PLAIN, COPIES>), blocks, DT_CUDA_BLOCK, 0, state->stream, pv, cv,
                       mv, vv, gv, elems, f, aligned, copy_aligned);
}

dt_status dt_cuda_optimizer_step(dt_device *device, dt_tensor *param, dt_tensor *copy, dt_tensor *m,
                                 dt_tensor *v, const dt_tensor *grad,
                                 const dt_optimizer_factors *factors, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    rule which = values(v) != NULL ? ADAM : values(m) != NULL ? MOMENTUM : PLAIN;

    DT_ASSERT(param->dtype == DT_F32 && grad->dtype == DT_F32 &&
              dt_tensor_elems(grad) == dt_tensor_elems(param));
    if (dt_tensor_elems(param) == 0)
        return DT_OK;
    if (copy != NULL && copy->data != NULL)
        DT_CUDA_DISPATCH(copy->dtype, "optimizer", err,
                         { launch<T, true>(state, which, param, copy, m, v, grad, factors); });
    else
        launch<float, false>(state, which, param, NULL, m, v, grad, factors);
    return dt_cuda_launched("optimizer", err);
}
