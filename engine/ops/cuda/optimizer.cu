/* optimizer: the ops of an optimizer step over flat buffers: sums, sums of squares, division by the norm,
 * the step.
 *
 * Bytes  memory bandwidth is the limit: per parameter, adamw reads 16 and writes 12 bytes, and 2 for a bf16 copy
 */
#include <string.h>

#include "engine/ops/cuda/cuda_int.cuh"

/* reduce: computes the sum, or the sum of squares, of whole tensors.
 *
 * The elements are cut into fixed pieces, one per block: as many as give each thread an element, at most
 * PIECES_MOST. Each block sums its piece in double; one block adds their results in a tree of a fixed shape.
 * The result depends only on the elements and their number.
 */

#define PIECES_MOST 1024

static int pieces_of(const dt_tensor *x)
{
    int64_t wanted = dt_cuda_ceil(dt_tensor_elems(x), DT_CUDA_BLOCK);

    return (int)(wanted < 1 ? 1 : wanted < PIECES_MOST ? wanted : PIECES_MOST);
}

template <bool SQUARES> __global__ void pieces(double *parts, const float *x, int64_t elems)
{
    __shared__ double shared[32];
    int64_t begin = elems * blockIdx.x / gridDim.x, end = elems * (blockIdx.x + 1) / gridDim.x;
    double total = 0;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        double value = x[i];

        total += SQUARES ? value * value : value;
    }
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

/* The number of pieces of each tensor; each has room for PIECES_MOST. */
struct piece_counts {
    int of[DT_CUDA_VALUES];
};

/* out[blockIdx.x] = the sum of that tensor's pieces. */
__global__ void join(double *out, const double *parts, piece_counts counts)
{
    __shared__ double shared[32];
    double total = 0;

    for (int i = (int)threadIdx.x; i < counts.of[blockIdx.x]; i += (int)blockDim.x)
        total += parts[(int64_t)blockIdx.x * PIECES_MOST + i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        out[blockIdx.x] = total;
}

/* Reduces at most DT_CUDA_VALUES tensors. */
static dt_status run(dt_device *device, double *out, const dt_tensor *x, int count, bool squares,
                     dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    size_t bytes = (size_t)count * sizeof(double);
    dt_status st = DT_OK;
    double *parts, *sums;
    piece_counts counts = {};
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device, (PIECES_MOST + 1) * bytes, err));
    parts = (double *)scratch;
    sums = parts + (size_t)count * PIECES_MOST;
    for (int i = 0; i < count; i++) {
        DT_ASSERT(x[i].dtype == DT_F32);
        counts.of[i] = pieces_of(&x[i]);
        if (squares)
            DT_CUDA_LAUNCH((pieces<true>), (unsigned)counts.of[i], DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES_MOST, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
        else
            DT_CUDA_LAUNCH((pieces<false>), (unsigned)counts.of[i], DT_CUDA_BLOCK, 0, state->stream,
                           parts + (size_t)i * PIECES_MOST, (const float *)x[i].data,
                           dt_tensor_elems(&x[i]));
    }
    DT_CUDA_LAUNCH(join, (unsigned)count, DT_CUDA_BLOCK, 0, state->stream, sums, parts, counts);
    DT_TRY(dt_cuda_launched("sum", err));
    DT_TRY(dt_cuda_check(
        cudaMemcpyAsync(state->host_values, sums, bytes, cudaMemcpyDeviceToHost, state->stream),
        "sum", err));
    DT_TRY(dt_cuda_check(cudaStreamSynchronize(state->stream), "sum", err));
    memcpy(out, state->host_values, bytes);
out:
    return st;
}

dt_status dt_cuda_sum_squares(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, 1, true, err);
}

dt_status dt_cuda_sum(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    return run(device, out, x, 1, false, err);
}

dt_status dt_cuda_sum_squares_each(dt_device *device, double *out, const dt_tensor *x, int count,
                                   dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < count; i += DT_CUDA_VALUES) {
        int left = count - i;

        DT_TRY(
            run(device, out + i, x + i, left < DT_CUDA_VALUES ? left : DT_CUDA_VALUES, true, err));
    }
out:
    return st;
}

/* normalize: computes out = x / max(|x|, eps).
 *
 * A fixed number of blocks sums the squares of fixed parts of the tensor in double. Every block of the second
 * kernel adds these sums in the same order and processes its share of the elements. The host waits for
 * nothing.
 */

#define PIECES 256 /* blocks of the first kernel; the second kernel adds one sum per thread */

__global__ void squares(double *parts, const float *x, int64_t elems)
{
    __shared__ double shared[32];
    int64_t begin = elems * blockIdx.x / PIECES, end = elems * (blockIdx.x + 1) / PIECES;
    double total = 0;

    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        total += (double)x[i] * (double)x[i];
    total = dt_block_sum(total, shared);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = total;
}

template <typename T>
__global__ void divide(T *out, const float *x, int64_t elems, const double *parts, double eps)
{
    __shared__ double shared[32];
    __shared__ float factor;
    double total = dt_block_sum(parts[threadIdx.x], shared);

    if (threadIdx.x == 0)
        factor = (float)(1.0 / fmax(sqrt(total), eps));
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elems;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = dt_from_float<T>(factor * x[i]);
}

dt_status dt_cuda_normalize(dt_device *device, dt_tensor *out, const dt_tensor *x, double eps,
                            dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t elems = dt_tensor_elems(x);
    dt_status st = DT_OK;
    void *scratch;

    DT_ASSERT(x->dtype == DT_F32 && dt_tensor_elems(out) == elems);
    if (elems == 0)
        return DT_OK;
    DT_TRY(dt_cuda_scratch(&scratch, device, PIECES * sizeof(double), err));
    DT_CUDA_LAUNCH(squares, PIECES, DT_CUDA_BLOCK, 0, state->stream, (double *)scratch,
                   (const float *)x->data, elems);
    DT_CUDA_DISPATCH(out->dtype, "normalize", err, {
        unsigned blocks = dt_cuda_blocks(state, elems, PIECES);

        DT_CUDA_LAUNCH((divide<T>), blocks, PIECES, 0, state->stream, (T *)out->data,
                       (const float *)x->data, elems, (const double *)scratch, eps);
    });
    DT_TRY(dt_cuda_launched("normalize", err));
out:
    return st;
}

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

/* States are F32, or bf16 as its bits. */
__device__ inline float state_to_float(float x)
{
    return x;
}
__device__ inline float state_to_float(uint16_t x)
{
    return dt_step_widen(x);
}
__device__ inline void set_state(float *to, float x, uint32_t)
{
    *to = x;
}
__device__ inline void set_state(uint16_t *to, float x, uint32_t random)
{
    *to = dt_step_narrow(x, random);
}

template <typename S>
__device__ inline void load_states(float *to, const S *from, int64_t i, int64_t elems, bool whole)
{
    dt_four<S> four = dt_four_load(from, i, elems, whole);

#pragma unroll
    for (int k = 0; k < 4; k++)
        to[k] = state_to_float(four.v[k]);
}

/* Rounds a state in bf16 by the 16 bits from `shift` on of random numbers. */
template <typename S>
__device__ inline void store_states(S *to, const float *from, int64_t i, int64_t elems, bool whole,
                                    uint32_t draw, int shift)
{
    dt_four<S> four;

#pragma unroll
    for (int k = 0; k < 4; k++)
        set_state(&four.v[k], from[k], dt_step_random((uint32_t)(i + k), draw) >> shift & 0xffffu);
    dt_four_store(to, i, elems, whole, four);
}

template <typename T, typename S, dt_optimizer_rule RULE, bool COPIES>
__global__ void step(float *p, T *copy, S *m, S *v, const float *grad, int64_t elems,
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
        } else {
            for (int k = 0; k < N && i + k < elems; k++) {
                pv[k] = p[i + k];
                gv[k] = grad[i + k];
            }
        }
        if (STATES > 0)
            load_states(mv, m, i, elems, whole);
        if (STATES > 1)
            load_states(vv, v, i, elems, whole);
#pragma unroll
        for (int k = 0; k < N; k++)
            step_one<RULE>(&pv[k], &mv[k], &vv[k], gv[k], &f);
        if (whole) {
            *(float4 *)(p + i) = *(float4 *)pv;
        } else {
            for (int k = 0; k < N && i + k < elems; k++)
                p[i + k] = pv[k];
        }
        if (STATES > 0)
            store_states(m, mv, i, elems, whole, f.draw, 0);
        if (STATES > 1)
            store_states(v, vv, i, elems, whole, f.draw, 16);
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
template <typename S> static S *state_of(dt_tensor *states, int s, dt_optimizer_rule rule)
{
    return s < states_of(rule) ? (S *)states[s].data : NULL;
}

/* S: the type of the states; only those of ADAM may be bf16. */
template <typename T, typename S, bool COPIES>
static void launch(dt_cuda_state *state, dt_optimizer_rule rule, dt_tensor *param, dt_tensor *copy,
                   dt_tensor *states, const dt_tensor *grad, const dt_optimizer_factors *f)
{
    int64_t elems = dt_tensor_elems(param);
    unsigned blocks = dt_cuda_blocks(state, elems, DT_CUDA_BLOCK * 4);
    float *pv = (float *)param->data;
    S *mv = state_of<S>(states, 0, rule), *vv = state_of<S>(states, 1, rule);
    T *cv = COPIES ? (T *)copy->data : NULL;
    const float *gv = (const float *)grad->data;
    /* a part of a unit starts at its first parameter, at any alignment */
    bool aligned = dt_cuda_fours<float>(pv) && dt_cuda_fours<S>(mv) && dt_cuda_fours<S>(vv) &&
                   dt_cuda_fours<float>(gv);
    bool copy_aligned = dt_cuda_fours<T>(cv);

#define LAUNCH(RULE, count, function)                                                      \
    if constexpr (sizeof(S) == sizeof(float) || DT_RULE_##RULE == DT_RULE_ADAM)            \
        if (rule == DT_RULE_##RULE)                                                        \
            DT_CUDA_LAUNCH((step<T, S, DT_RULE_##RULE, COPIES>), blocks, DT_CUDA_BLOCK, 0, \
                           state->stream, pv, cv, mv, vv, gv, elems, f, aligned, copy_aligned);
    DT_OPTIMIZER_RULES(LAUNCH)
}

template <typename T, bool COPIES>
static void launch_for(dt_cuda_state *state, dt_optimizer_rule rule, dt_tensor *param,
                       dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                       const dt_optimizer_factors *f)
{
    if (states_of(rule) > 0 && states[0].dtype == DT_BF16)
        launch<T, uint16_t, COPIES>(state, rule, param, copy, states, grad, f);
    else
        launch<T, float, COPIES>(state, rule, param, copy, states, grad, f);
}

dt_status dt_cuda_optimizer_step(dt_device *device, dt_optimizer_rule rule, dt_tensor *param,
                                 dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                 const dt_optimizer_factors *factors, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);

    DT_ASSERT(param->dtype == DT_F32 && grad->dtype == DT_F32 &&
              dt_tensor_elems(grad) == dt_tensor_elems(param));
    for (int s = 0; s < states_of(rule); s++)
        DT_ASSERT(
            states[s].dtype == states[0].dtype &&
            (states[s].dtype == DT_F32 || (states[s].dtype == DT_BF16 && rule == DT_RULE_ADAM)));
    if (dt_tensor_elems(param) == 0)
        return DT_OK;
    if (copy != NULL && copy->data != NULL)
        DT_CUDA_DISPATCH(copy->dtype, "optimizer", err,
                         { launch_for<T, true>(state, rule, param, copy, states, grad, factors); });
    else
        launch_for<float, false>(state, rule, param, NULL, states, grad, factors);
    return dt_cuda_launched("optimizer", err);
}
