/* attention_own: compares two implementations of attention, and chooses between the built-in ones.
 *
 * When a shape first occurs, both run on the data of the step. The kernel for sm_90a is used only if its results
 * equal those of the other kernel within rounding, and do not change in any bit when it runs again. During this
 * trial, a thread that waits too long for a barrier continues: a defect then gives wrong results, which the trial
 * detects, instead of a hang.
 */
#include <float.h>
#include <map>
#include <new>
#include <stdio.h>
#include <tuple>

#include "base/log.h"
#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/product.cuh"
#include "engine/ops/cuda/tuned.h"

/* --- comparing two implementations. Memory: two more copies of out and lse while a shape is tried */

/* Largest difference of out, relative to the largest number of its row. It is relative to the row
 * because the outputs of late queries are averages of many values, and small. Both kernels round
 * probabilities and out to the type, in different orders: the bounds are some units of the 8 or 11
 * bits. */
#define OUT_BF16 (1.0f / 32)
#define OUT_F16  (1.0f / 256)
/* Largest difference of lse, an fp32 number. Sums and exponentials are precise to about 1e-6; a
 * missing mask or factor changes lse by tenths. */
#define LSE_APART 2e-3f

/* most[b] = the largest |a - b| in the rows that block b compares, each `cols` long, one warp per
 * row. If `relative`, the difference is divided by the row's largest |a|. A number that is not
 * finite in only one of the two counts as an infinite difference. */
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

dt_status dt_attention_apart(float *apart, dt_device *device, const void *a, const void *b,
                             int64_t rows, int64_t cols, bool relative, dt_dtype dtype,
                             dt_error *err)
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

dt_status dt_attention_results_take(dt_attention_results (&out)[2], const dt_attention &a,
                                    dt_dtype dtype, dt_error *err)
{
    size_t sums = (size_t)(a.batch * a.heads * a.queries);
    size_t out_bytes = (sums * (size_t)a.d * dt_dtype_bytes(dtype) + 255) / 256 * 256;
    size_t lse_bytes = (sums * sizeof(float) + 255) / 256 * 256;
    char *all = NULL;
    dt_status st = dt_cuda_check(cudaMalloc(&all, 2 * (out_bytes + lse_bytes)),
                                 "comparing attention kernels", err);

    for (int i = 0; i < 2; i++) {
        out[i].out = all == NULL ? NULL : all + (size_t)i * (out_bytes + lse_bytes);
        out[i].lse = all == NULL ? NULL : (float *)((char *)out[i].out + out_bytes);
    }
    return st;
}

dt_status dt_attention_results_agree(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     const dt_attention_results (&theirs)[2], dt_error *err)
{
    int64_t heads = a.batch * a.heads, rows = heads * a.queries;
    float most = dtype == DT_BF16 ? OUT_BF16 : OUT_F16, apart[2], again[2];
    dt_status st = DT_OK;

    DT_TRY(dt_attention_apart(&again[0], device, theirs[0].out, theirs[1].out, rows, a.d, false,
                              dtype, err));
    DT_TRY(dt_attention_apart(&again[1], device, theirs[0].lse, theirs[1].lse, heads, a.queries,
                              false, DT_F32, err));
    DT_TRY(dt_attention_apart(&apart[0], device, a.out_written, theirs[0].out, rows, a.d, true,
                              dtype, err));
    DT_TRY(dt_attention_apart(&apart[1], device, a.lse, theirs[0].lse, heads, a.queries, false,
                              DT_F32, err));
    if (!(again[0] == 0.0f && again[1] == 0.0f))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "its results change when it runs again");
    if (!(apart[0] <= most && apart[1] <= LSE_APART))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "its results differ from the built-in kernel's by %g of a row's largest number, "
                 "sums by %g",
                 (double)apart[0], (double)apart[1]);
out:
    return st;
}

/* Further shapes use the kernel for sm_80: lengths that change with every call would cost too much. */
#define SHAPES_MOST 16
#define ROWS_LEAST  1024 /* queries of a call, all sequences together: fewer are not worth a trial */
#define PATIENCE    (1u << 18) /* at most this many microseconds */
#define KIND_FORWARD \
    "wgmma 1; attention forward" /* increment the number whenever the results change */

namespace
{

using shape_key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int, int>;

struct trial {
    dt_device *device;
    const dt_attention *a;
    dt_dtype dtype;
};

} // namespace

struct dt_cuda_own_attention {
    dt_attention_wish wish;
    bool hopper; /* the GPU has compute capability 9.0 */
    std::map<shape_key, bool> wgmma;
};

void dt_cuda_own_attention_close(dt_cuda_own_attention *own)
{
    delete own;
}

static dt_status open(dt_cuda_state *state, dt_error *err)
{
    dt_cuda_own_attention *made = new (std::nothrow) dt_cuda_own_attention();
    int major = 0, minor = 0;
    dt_status st = DT_OK;

    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for attention");
    DT_TRY(dt_attention_wish_read(&made->wish, err));
    DT_TRY(dt_cuda_check(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, state->index),
        "the GPU's compute capability", err));
    DT_TRY(dt_cuda_check(
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, state->index),
        "the GPU's compute capability", err));
    made->hopper = major == 9 && minor == 0;
    if (made->wish == DT_ATTENTION_WGMMA && !made->hopper)
        dt_log_info("attention: using mma; wgmma does not support compute capability %d.%d", major,
                    minor);
    state->own_attention = made;
    made = NULL;
out:
    delete made;
    return st;
}

/* --- measuring a shape */

static dt_status build(void *, dt_error *)
{
    return DT_OK; /* nothing to build: the kernel is part of the library */
}

/* Measures both kernels; the results of the kernel for sm_80 are left in out and lse. If the other
 * results are wrong, nothing is timed. */
static dt_status measure(void *context, float *own_ms, float *rival_ms, dt_error *err)
{
    trial *t = (trial *)context;
    dt_cuda_state *state = dt_cuda_of(t->device);
    dt_attention other = *t->a;
    dt_attention_results theirs[2] = {};
    dt_status st = DT_OK;
    int turn = 0;
    auto rival = [&]() {
        const dt_attention_results *to = &theirs[turn++ % 2];

        other.out_written = to->out;
        other.lse = to->lse;
        return dt_attention_wgmma_forward(state, other, t->dtype, PATIENCE, err);
    };

    DT_TRY(dt_attention_results_take(theirs, *t->a, t->dtype, err));
    DT_TRY(dt_attention_time(
        own_ms, state, [&]() { return dt_attention_flash_forward(state, *t->a, t->dtype, err); },
        err));
    for (int i = 0; i < 2; i++)
        DT_TRY(rival());
    DT_TRY(dt_attention_results_agree(t->device, *t->a, t->dtype, theirs, err));
    DT_TRY(dt_attention_time(rival_ms, state, rival, err));
out:
    if (theirs[0].out != NULL)
        cudaFree(theirs[0].out);
    return st;
}

static bool choose(trial *t)
{
    dt_cuda_state *state = dt_cuda_of(t->device);
    const dt_attention *a = t->a;
    char name[DT_ATTENTION_NAME_MAX];
    dt_attention_question question = {};

    snprintf(name, sizeof(name), "%lld x %lld x %lld/%lld x %lld %s %s", (long long)a->batch,
             (long long)a->queries, (long long)a->heads, (long long)a->groups, (long long)a->d,
             a->mask == DT_MASK_FULL ? "full" : "causal", dt_dtype_name(t->dtype));
    question.tuned = dt_cuda_products_tuned(state->products);
    question.machine = dt_cuda_products_machine(state->products);
    question.kind = KIND_FORWARD;
    question.name = name;
    question.own = "mma";
    question.rival = "wgmma";
    question.context = t;
    question.build = build;
    question.measure = measure;
    return dt_attention_choose(&question);
}

/* --- entry points */

/* Returns whether the kernel for sm_90a supports the call, if attention_flash.cu does. */
static bool wgmma_has(const dt_attention &a)
{
    return a.p == 0.0f && a.queries < INT32_MAX / 2 && a.keys < INT32_MAX / 2 &&
           a.batch * a.heads < INT32_MAX;
}

static dt_status takes_wgmma(bool *out, dt_device *device, const dt_attention &a, dt_dtype dtype,
                             dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    shape_key key(a.batch, a.queries, a.keys, a.heads, a.groups, a.d, (int)a.mask, (int)dtype);
    dt_cuda_own_attention *own;
    dt_status st = DT_OK;

    *out = false;
    if (state->own_attention == NULL)
        DT_TRY(open(state, err));
    own = state->own_attention;
    if (!own->hopper || own->wish == DT_ATTENTION_MMA || !wgmma_has(a))
        return DT_OK;
    if (own->wish == DT_ATTENTION_WGMMA) {
        *out = true;
        return DT_OK;
    }
    if (a.queries == a.keys && a.batch * a.queries >= ROWS_LEAST) {
        auto known = own->wgmma.find(key);

        if (known == own->wgmma.end() && own->wgmma.size() < SHAPES_MOST && !state->recording) {
            trial t = {device, &a, dtype};

            known = own->wgmma.emplace(key, false).first;
            known->second = choose(&t);
            (void)cudaGetLastError(); /* reset the error of a kernel that could not be launched */
        }
        *out = known != own->wgmma.end() && known->second;
    }
out:
    return st;
}

dt_status dt_attention_own_forward(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                   dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_status st = DT_OK;
    bool wgmma;

    DT_TRY(takes_wgmma(&wgmma, device, a, dtype, err));
    if (wgmma)
        return dt_attention_wgmma_forward(state, a, dtype, 0, err);
    return dt_attention_flash_forward(state, a, dtype, err);
out:
    return st;
}
