/* attention_own: chooses which built-in tensor core kernel computes a forward pass: the one for sm_80, which runs
 * everywhere, or the one for sm_90a (attention_choice.h has the rule and the switch).
 *
 * When a shape first occurs, both run on the data of the step. The kernel for sm_90a is used only if its results
 * equal those of the other kernel within rounding, and do not change in any bit when it runs again. During this
 * trial, a thread that waits too long for a barrier continues: a defect then gives wrong results, which the trial
 * detects, instead of a hang.
 */
#include <stdio.h>

#include <map>
#include <new>
#include <tuple>

#include "base/log.h"
#include "engine/ops/cuda/attention_choice.h"
#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/attention_trial.cuh"
#include "engine/ops/cuda/product.cuh"

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
