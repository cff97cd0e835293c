/* attention_cudnn: causal forward attention by cuDNN, where it is there and the faster one
 * (attention_choice.h has the rule, cudnn_graph.h what is computed).
 *
 * When a shape is first met both are run on what the step is about, and cuDNN's is taken only where
 * its results are ours within rounding and the same in every bit when run again: what no card here
 * has run cannot go wrong unseen.
 * Memory  while a shape is measured: two more of out and lse. Where there is no room, ours
 */
#include <float.h>

#include <map>
#include <new>
#include <tuple>

#include "base/log.h"
#include "engine/ops/cuda/attention_choice.h"
#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/cudnn_plan.h"
#include "engine/ops/cuda/product.cuh"

#define TRIALS         3
#define RUNS           4 /* of a trial: the host's time to launch one is hidden behind the others */
#define SHAPES_MOST    16 /* others are ours: lengths that change with every call cost too much */
#define WORKSPACE_MOST ((size_t)64 << 20)
/* Of the largest number of a query and head of ours: late queries are averages of many values, and
 * small. Each rounds probabilities and out to the type, in another order: some units of 8 or 11
 * bits. */
#define OUT_BF16 (1.0f / 32)
#define OUT_F16  (1.0f / 256)
/* An fp32 number of either sign; sums and exponentials of 1e-6. A mask or a factor that is left out
 * moves it by tenths. */
#define LSE_APART 2e-3f

namespace
{

struct shape_plan {
    dt_attention_wish way; /* own or cudnn */
    dt_cudnn_plan plan;
};

using shape_key = std::tuple<int64_t, int64_t, int64_t, int64_t, int>;

/* A shape that is met for the first time. */
struct trial {
    dt_device *device;
    const dt_attention *a;
    dt_cudnn_shape shape;
    dt_cudnn_plan *plan;
};

} // namespace

struct dt_cuda_attention {
    dt_attention_wish wish; /* own where the library is not available */
    dt_cudnn cudnn;
    std::map<shape_key, shape_plan> shapes;
};

/* --- life */

/* Never fails for the library's sake. */
static dt_status open(dt_cuda_state *state, dt_error *err)
{
    dt_cuda_attention *made = new (std::nothrow) dt_cuda_attention();
    dt_error why = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for attention");
    DT_TRY(dt_attention_wish_read(&made->wish, err));
    if (made->wish != DT_ATTENTION_OWN && dt_cudnn_open(&made->cudnn, &why) != DT_OK) {
        dt_log_info("attention: ours, without cuDNN: %s", why.message);
        dt_cudnn_close(&made->cudnn);
        made->wish = DT_ATTENTION_OWN;
    }
    state->attention = made;
    made = NULL;
out:
    delete made;
    return st;
}

void dt_cuda_attention_close(dt_cuda_attention *attention)
{
    if (attention == NULL)
        return;
    for (auto &entry : attention->shapes)
        dt_cudnn_plan_close(&entry.second.plan);
    dt_cudnn_close(&attention->cudnn);
    delete attention;
}

/* --- comparing */

/* most[b] = of the rows of a and b, `cols` long, that block b looks at, a warp a row: the largest
 * |a - b|, where relative as a part of the row's largest |a|. What is not finite in one alone is as
 * far apart as can be. */
template <typename T>
__global__ void apart_kernel(float *most, const T *a, const T *b, int64_t rows, int64_t cols,
                             bool relative)
{
    int64_t warps = blockDim.x / DT_CUDA_WARP, lane = threadIdx.x % DT_CUDA_WARP;
    __shared__ float shared[32];
    float worst = 0.0f;

    for (int64_t row = blockIdx.x * warps + threadIdx.x / DT_CUDA_WARP; row < rows;
         row += gridDim.x * warps) {
        float apart = 0.0f, size = 0.0f;

        for (int64_t i = row * cols + lane; i < (row + 1) * cols; i += DT_CUDA_WARP) {
            float x = dt_to_float(a[i]), y = dt_to_float(b[i]), d = x == y ? 0.0f : fabsf(x - y);

            apart = fmaxf(apart, d <= FLT_MAX ? d : INFINITY);
            size = fmaxf(size, fabsf(x));
        }
        apart = dt_warp_max(apart);
        size = dt_warp_max(size);
        if (relative && apart > 0.0f)
            apart = apart / size <= FLT_MAX ? apart / size : INFINITY;
        worst = fmaxf(worst, apart);
    }
    worst = dt_block_max(worst, shared);
    if (threadIdx.x == 0)
        most[blockIdx.x] = worst;
}

/* Waits for the stream. */
static dt_status compare(float *apart, dt_device *device, const void *a, const void *b,
                         int64_t rows, int64_t cols, bool relative, dt_dtype dtype, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    unsigned blocks = dt_cuda_blocks(state, rows, DT_CUDA_BLOCK / DT_CUDA_WARP);
    size_t bytes = blocks * sizeof(float);
    float *host = new (std::nothrow) float[blocks];
    dt_status st = DT_OK;
    void *most;

    *apart = 0.0f;
    if (host == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to compare results");
    DT_TRY(dt_cuda_scratch(&most, device, bytes, err));
    if (dtype == DT_F32)
        DT_CUDA_LAUNCH((apart_kernel<float>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const float *)a, (const float *)b, rows, cols, relative);
    else if (dtype == DT_BF16)
        DT_CUDA_LAUNCH((apart_kernel<__nv_bfloat16>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const __nv_bfloat16 *)a, (const __nv_bfloat16 *)b, rows,
                       cols, relative);
    else
        DT_CUDA_LAUNCH((apart_kernel<__half>), blocks, DT_CUDA_BLOCK, 0, state->stream,
                       (float *)most, (const __half *)a, (const __half *)b, rows, cols, relative);
    DT_TRY(dt_cuda_launched("attention", err));
    DT_TRY(device->copy_out(device, host, most, bytes, err));
    for (unsigned i = 0; i < blocks; i++)
        *apart = fmaxf(*apart, host[i]);
out:
    delete[] host;
    return st;
}

/* --- one shape */

static dt_status run(dt_device *device, dt_cudnn_plan *plan, void *out, float *lse, const void *qkv,
                     dt_error *err)
{
    dt_status st = DT_OK;
    void *workspace = NULL;

    if (plan->workspace_bytes > 0)
        DT_TRY(dt_cuda_scratch(&workspace, device, plan->workspace_bytes, err));
    DT_TRY(dt_cudnn_plan_run(plan, out, lse, qkv, workspace, err));
out:
    return st;
}

static dt_status build(void *context, dt_error *err)
{
    trial *t = (trial *)context;
    dt_cuda_state *state = dt_cuda_of(t->device);
    dt_cudnn *cudnn = &state->attention->cudnn;
    dt_status st = DT_OK;

    if (cudnn->handle == NULL)
        DT_TRY(dt_cudnn_connect(cudnn, state->stream, err));
    DT_TRY(dt_cudnn_plan_open(t->plan, cudnn, &t->shape, WORKSPACE_MOST, err));
out:
    return st;
}

/* Of one run, in the best of TRIALS; the first trial warms up. `work` queues one run. */
template <typename W>
static dt_status time_of(float *best_ms, dt_cuda_state *state, cudaEvent_t begin, cudaEvent_t end,
                         W work, dt_error *err)
{
    dt_status st = DT_OK;
    float ms;

    for (int i = 0; i <= TRIALS; i++) {
        DT_TRY(dt_cuda_check(cudaEventRecord(begin, state->stream), "timing attention", err));
        for (int run = 0; run < RUNS; run++)
            DT_TRY(work());
        DT_TRY(dt_cuda_check(cudaEventRecord(end, state->stream), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventSynchronize(end), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventElapsedTime(&ms, begin, end), "timing attention", err));
        if (i == 1 || (i > 1 && ms / RUNS < *best_ms))
            *best_ms = ms / RUNS;
    }
out:
    return st;
}

/* Theirs against ours, and against theirs once more. */
static dt_status agree(const trial *t, const void *out[2], const void *lse[2], dt_error *err)
{
    int64_t heads = t->a->batch * t->a->heads, rows = heads * t->a->queries;
    dt_dtype dtype = t->shape.dtype;
    float most = dtype == DT_BF16 ? OUT_BF16 : OUT_F16, apart[2], again[2];
    dt_status st = DT_OK;

    DT_TRY(compare(&again[0], t->device, out[0], out[1], rows, t->a->d, false, dtype, err));
    DT_TRY(compare(&again[1], t->device, lse[0], lse[1], heads, t->a->queries, false, DT_F32, err));
    DT_TRY(
        compare(&apart[0], t->device, t->a->out_written, out[0], rows, t->a->d, true, dtype, err));
    DT_TRY(
        compare(&apart[1], t->device, t->a->lse, lse[0], heads, t->a->queries, false, DT_F32, err));
    if (!(again[0] == 0.0f && again[1] == 0.0f))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "it gives other bits when run again");
    if (!(apart[0] <= most && apart[1] <= LSE_APART))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "its results are not ours: %g of a row's largest number apart, sums %g apart",
                 (double)apart[0], (double)apart[1]);
out:
    return st;
}

/* Ours is left in out and lse. */
static dt_status measure(void *context, float *own_ms, float *cudnn_ms, dt_error *err)
{
    trial *t = (trial *)context;
    dt_cuda_state *state = dt_cuda_of(t->device);
    size_t sums = (size_t)(t->a->batch * t->a->heads * t->a->queries);
    size_t out_bytes = sums * (size_t)t->a->d * dt_dtype_bytes(t->shape.dtype);
    size_t lse_bytes = (sums * sizeof(float) + 255) / 256 * 256;
    cudaEvent_t begin = NULL, end = NULL;
    const void *out[2], *lse[2];
    char *copies = NULL;
    dt_status st = DT_OK;
    int turn = 0;

    out_bytes = (out_bytes + 255) / 256 * 256;
    DT_TRY(dt_cuda_check(cudaMalloc(&copies, 2 * (out_bytes + lse_bytes)),
                         "comparing attention with ours", err));
    for (int i = 0; i < 2; i++) {
        out[i] = copies + i * (out_bytes + lse_bytes);
        lse[i] = copies + i * (out_bytes + lse_bytes) + out_bytes;
    }
    DT_TRY(dt_cuda_check(cudaEventCreate(&begin), "timing attention", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&end), "timing attention", err));
    DT_TRY(time_of(
        own_ms, state, begin, end,
        [&]() { return dt_attention_flash_forward(state, *t->a, t->shape.dtype, err); }, err));
    DT_TRY(time_of(
        cudnn_ms, state, begin, end,
        [&]() {
            int i = turn++ % 2;

            return run(t->device, t->plan, (void *)out[i], (float *)lse[i], t->a->q.data, err);
        },
        err));
    DT_TRY(agree(t, out, lse, err));
out:
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    if (copies != NULL)
        cudaFree(copies);
    return st;
}

static dt_attention_wish choose(trial *t)
{
    dt_cuda_state *state = dt_cuda_of(t->device);
    dt_attention_question question = {};

    question.wish = state->attention->wish;
    question.tuned = dt_cuda_products_tuned(state->products);
    question.machine = dt_cuda_products_machine(state->products);
    question.version = state->attention->cudnn.version();
    question.shape = t->shape;
    question.context = t;
    question.build = build;
    question.measure = measure;
    return dt_attention_choose(&question);
}

/* q, k and v side by side in every row, as many heads of each. */
static bool packed(const dt_attention &a, dt_dtype dtype)
{
    size_t apart = (size_t)(a.heads * a.d) * dt_dtype_bytes(dtype);
    int64_t row = 3 * a.heads * a.d;

    return a.groups == a.heads && a.queries == a.keys && a.q.row == row && a.k.row == row &&
           a.v.row == row && a.q.sequence == a.queries * row && a.k.sequence == a.q.sequence &&
           a.v.sequence == a.q.sequence && (char *)a.q.data + apart == a.k.data &&
           (char *)a.k.data + apart == a.v.data;
}

/* Whether it may be asked at all: cuDNN's dropout is not ours, last queries are few, and no model
 * here has full attention or views of other kinds. */
static bool may(const dt_attention &a, dt_dtype dtype)
{
    return a.mask == DT_MASK_CAUSAL && a.p == 0.0f && packed(a, dtype) &&
           dt_attention_flash_has(a, dtype) && ((uintptr_t)a.out_written & 15) == 0 &&
           ((uintptr_t)a.lse & 15) == 0;
}

dt_status dt_attention_cudnn_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     bool *done, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    shape_key key(a.batch, a.queries, a.heads, a.d, (int)dtype);
    dt_error why = DT_ERROR_INIT;
    dt_cuda_attention *attention;
    dt_status st = DT_OK;

    *done = false;
    if (!may(a, dtype))
        return DT_OK;
    if (state->attention == NULL)
        DT_TRY(open(state, err));
    attention = state->attention;
    if (attention->wish != DT_ATTENTION_OWN) {
        auto known = attention->shapes.find(key);

        if (known == attention->shapes.end()) {
            if (attention->shapes.size() >= SHAPES_MOST)
                return DT_OK;
            known = attention->shapes.emplace(key, shape_plan()).first;

            trial t = {device, &a, {a.batch, a.queries, a.heads, a.d, dtype}, &known->second.plan};

            known->second.way = choose(&t);
            (void)cudaGetLastError(); /* of a kernel that was not available */
            if (known->second.way == DT_ATTENTION_OWN)
                dt_cudnn_plan_close(&known->second.plan);
        }
        if (known->second.way == DT_ATTENTION_OWN)
            return DT_OK;
        *done = run(device, &known->second.plan, a.out_written, a.lse, a.q.data, &why) == DT_OK;
        if (!*done && state->recording) /* the recording is dropped, and the way stays */
            return DT_FAIL(err, why.code, "%s", why.message);
        if (!*done) {
            dt_log_warn("attention: ours from here on: %s", why.message);
            known->second.way = DT_ATTENTION_OWN;
        }
    }
out:
    return st;
}
