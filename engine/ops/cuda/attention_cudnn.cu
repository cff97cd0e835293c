/* attention_cudnn: computes causal forward attention with cuDNN if it is installed and faster
 * (tuned.h has the rule, cudnn.h the graph).
 *
 * When a shape first occurs, both kernels run on the data of the step. cuDNN's is used only if its
 * results equal those of the built-in kernel within rounding, and do not change in any bit when it runs
 * again. This also checks cuDNN on GPUs on which dtrun was never tested.
 * Memory  while a shape is measured: two more copies of out and lse. If they do not fit, the built-in
 *         kernel is used
 */
#include <stdio.h>

#include <map>
#include <new>
#include <tuple>

#include "base/log.h"
#include "engine/ops/cuda/attention_int.cuh"
#include "engine/ops/cuda/cudnn.h"
#include "engine/ops/cuda/product.cuh"
#include "engine/ops/cuda/tuned.h"

/* Further shapes use the built-in kernel: lengths that change with every call would cost too much. */
#define SHAPES_MOST    16
#define WORKSPACE_MOST ((size_t)64 << 20)
namespace
{

struct shape_plan {
    bool taken;
    dt_cudnn_plan plan;
};

using shape_key = std::tuple<int64_t, int64_t, int64_t, int64_t, int>;

/* A shape that occurs for the first time. */
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

/* --- opening and closing */

/* Loads cuDNN. A failure of the library is only logged. */
static dt_status open(dt_cuda_state *state, dt_error *err)
{
    dt_cuda_attention *made = new (std::nothrow) dt_cuda_attention();
    dt_error why = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for attention");
    DT_TRY(dt_attention_wish_read(&made->wish, err));
    if (dt_attention_asks_cudnn(made->wish) && dt_cudnn_open(&made->cudnn, &why) != DT_OK) {
        dt_log_info("attention: using the built-in kernel without cuDNN: %s", why.message);
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

/* --- measuring a shape */

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

/* Measures both kernels; the results of the built-in one are left in out and lse. */
static dt_status measure(void *context, float *own_ms, float *cudnn_ms, dt_error *err)
{
    trial *t = (trial *)context;
    dt_cuda_state *state = dt_cuda_of(t->device);
    dt_dtype dtype = t->shape.dtype;
    dt_attention_results theirs[2] = {};
    dt_status st = DT_OK;
    int turn = 0;

    DT_TRY(dt_attention_results_take(theirs, *t->a, dtype, err));
    DT_TRY(dt_attention_time(
        own_ms, state, [&]() { return dt_attention_own_forward(t->device, *t->a, dtype, err); },
        err));
    DT_TRY(dt_attention_time(
        cudnn_ms, state,
        [&]() {
            dt_attention_results *to = &theirs[turn++ % 2];

            return run(t->device, t->plan, to->out, to->lse, t->a->q.data, err);
        },
        err));
    DT_TRY(dt_attention_results_agree(t->device, *t->a, dtype, theirs, err));
out:
    if (theirs[0].out != NULL)
        cudaFree(theirs[0].out);
    return st;
}

static bool choose(trial *t)
{
    dt_cuda_state *state = dt_cuda_of(t->device);
    size_t version = state->attention->cudnn.version();
    char rival[64], kind[64], name[DT_ATTENTION_NAME_MAX];
    const dt_cudnn_shape *s = &t->shape;
    dt_attention_question question = {};

    snprintf(rival, sizeof(rival), "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    snprintf(kind, sizeof(kind), "cudnn %zu; attention forward", version);
    snprintf(name, sizeof(name), "%lld x %lld x %lld x %lld %s", (long long)s->batch,
             (long long)s->t, (long long)s->heads, (long long)s->d, dt_dtype_name(s->dtype));
    question.forced = state->attention->wish == DT_ATTENTION_CUDNN;
    question.tuned = dt_cuda_products_tuned(state->products);
    question.machine = dt_cuda_products_machine(state->products);
    question.kind = kind;
    question.name = name;
    question.own = "ours";
    question.rival = rival;
    question.context = t;
    question.build = build;
    question.measure = measure;
    return dt_attention_choose(&question);
}

/* Returns whether q, k and v are contiguous in every row, with the same number of heads. */
static bool packed(const dt_attention &a, dt_dtype dtype)
{
    size_t apart = (size_t)(a.heads * a.d) * dt_dtype_bytes(dtype);
    int64_t row = 3 * a.heads * a.d;

    return a.groups == a.heads && a.queries == a.keys && a.q.row == row && a.k.row == row &&
           a.v.row == row && a.q.sequence == a.queries * row && a.k.sequence == a.q.sequence &&
           a.v.sequence == a.q.sequence && (char *)a.q.data + apart == a.k.data &&
           (char *)a.k.data + apart == a.v.data;
}

/* Returns whether cuDNN is considered for the call. It is not for dropout, because its mask differs
 * from dtrun's; nor for calls of few queries and many keys; nor for full attention and other
 * layouts, which no model uses with this path. */
static bool may(const dt_attention &a, dt_dtype dtype)
{
    return a.mask == DT_MASK_CAUSAL && a.p == 0.0f && packed(a, dtype) &&
           dt_attention_flash_has(a, dtype) && a.scale == (float)(1.0 / sqrt((double)a.d)) &&
           ((uintptr_t)a.out_written & 15) == 0 && ((uintptr_t)a.lse & 15) == 0;
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
    if (dt_attention_asks_cudnn(attention->wish)) {
        auto known = attention->shapes.find(key);

        if (known == attention->shapes.end()) {
            if (attention->shapes.size() >= SHAPES_MOST)
                return DT_OK;
            known = attention->shapes.emplace(key, shape_plan()).first;

            trial t = {device, &a, {a.batch, a.queries, a.heads, a.d, dtype}, &known->second.plan};

            known->second.taken = choose(&t);
            (void)cudaGetLastError(); /* reset the error of a kernel that was not available */
            if (!known->second.taken)
                dt_cudnn_plan_close(&known->second.plan);
        }
        if (!known->second.taken)
            return DT_OK;
        *done = run(device, &known->second.plan, a.out_written, a.lse, a.q.data, &why) == DT_OK;
        if (!*done && state->recording) /* the recording is discarded; cuDNN stays chosen */
            return DT_FAIL(err, why.code, "%s", why.message);
        if (!*done) {
            dt_log_warn("attention: using the built-in kernel from now on: %s", why.message);
            known->second.taken = false;
        }
    }
out:
    return st;
}
