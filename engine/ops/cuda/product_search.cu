/* product_search: chooses the algorithm that computes a product, and whether the library's fused product is
 * faster than separate kernels. Every candidate is run before it is chosen, since algorithms that the library
 * proposes may still fail.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/ops/cuda/product.cuh"
#include "engine/ops/cuda/tuned.h"

#define CANDIDATES 8
#define TRIALS     3

static dt_status check(cublasStatus_t status, dt_error *err)
{
    return dt_cuda_product_check(status, "choose", err);
}

/* --- timing */

struct stopwatch {
    cudaEvent_t begin, end;
};

static void close_watch(stopwatch *watch)
{
    if (watch->begin != NULL)
        cudaEventDestroy(watch->begin);
    if (watch->end != NULL)
        cudaEventDestroy(watch->end);
    *watch = {};
}

static dt_status open_watch(stopwatch *watch, dt_error *err)
{
    dt_status st = DT_OK;

    *watch = {};
    DT_TRY(dt_cuda_check(cudaEventCreate(&watch->begin), "choose", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&watch->end), "choose", err));
out:
    if (st != DT_OK)
        close_watch(watch);
    return st;
}

/* Returns the milliseconds of the best of `trials` runs after one run that warms up, 0 if trials is
 * 0; negative on failure. */
template <typename Work>
static float time_work(dt_cuda_state *state, const stopwatch &watch, int trials, Work work)
{
    float best = -1.0f;

    for (int i = 0; i <= trials; i++) {
        float ms;

        if (cudaEventRecord(watch.begin, state->stream) != cudaSuccess || !work() ||
            cudaEventRecord(watch.end, state->stream) != cudaSuccess ||
            cudaEventSynchronize(watch.end) != cudaSuccess ||
            cudaEventElapsedTime(&ms, watch.begin, watch.end) != cudaSuccess) {
            (void)cudaGetLastError(); /* reset: the next launch would report it */
            return -1.0f;
        }
        if (i > 0 && (best < 0 || ms < best))
            best = ms;
    }
    return trials > 0 ? best : 0.0f;
}

/* --- choosing the algorithm */

/* A product that can be run repeatedly: if it adds to D, it runs on a copy of D. */
struct trial {
    dt_cuda_state *state;
    const dt_cuda_plan *made;
    const dt_cuda_product *p;
    void *copy, *d;
    stopwatch watch;
};

static void close_trial(trial *t)
{
    close_watch(&t->watch);
    if (t->copy != NULL)
        cudaFree(t->copy);
    t->copy = NULL;
}

static dt_status open_trial(trial *t, dt_cuda_state *state, const dt_cuda_plan *made,
                            const dt_cuda_product *p, dt_error *err)
{
    size_t bytes = (size_t)p->m * (size_t)p->n * dt_dtype_bytes(p->out);
    dt_status st = DT_OK;

    *t = {state, made, p, NULL, p->d, {}};
    if (p->beta != 0.0f && p->c == NULL) {
        DT_TRY(dt_cuda_check(cudaMalloc(&t->copy, bytes), "choosing an algorithm", err));
        t->d = t->copy;
    }
    DT_TRY(open_watch(&t->watch, err));
out:
    if (st != DT_OK)
        close_trial(t);
    return st;
}

static float time_algorithm(const trial &t, int trials, const cublasLtMatmulAlgo_t *algo)
{
    return time_work(t.state, t.watch, trials, [&]() {
        return dt_cuda_product_multiply(t.state, t.made, t.p, t.d, algo) == CUBLAS_STATUS_SUCCESS;
    });
}

/* Gives the fastest of the candidates; one must be 2 % faster to displace one that the library
 * ranks higher. Returns false if none of them runs. */
static bool fastest(cublasLtMatmulAlgo_t *out, const trial &t,
                    const cublasLtMatmulHeuristicResult_t *found, int count)
{
    float best = -1.0f;

    for (int i = 0; i < count; i++) {
        float ms = time_algorithm(t, TRIALS, &found[i].algo);

        if (ms >= 0 && (best < 0 || ms < 0.98f * best)) {
            best = ms;
            *out = found[i].algo;
        }
    }
    return best >= 0;
}

template <typename V>
static dt_status prefer(cublasLtMatmulPreference_t preference,
                        cublasLtMatmulPreferenceAttributes_t which, V value, dt_error *err)
{
    return check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
                 err);
}

/* Gives the algorithms that the library proposes, best first by its own estimate; *count is 0 if it
 * has no kernel. */
static dt_status ask(const trial &t, size_t workspace, cublasLtMatmulHeuristicResult_t *found,
                     int *count, dt_error *err)
{
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    dt_cuda_kind kind = dt_cuda_product_kind(t.p);
    const dt_cuda_plan *made = t.made;
    cublasLtMatmulPreference_t preference = NULL;
    int given = 0;
    cublasStatus_t status;
    dt_status st = DT_OK;

    *count = 0;
    DT_TRY(check(cublasLtMatmulPreferenceCreate(&preference), err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.align_a, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.align_b, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.align_d, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.align_d, err));
    status =
        cublasLtMatmulAlgoGetHeuristic(t.state->products->handle, made->desc, made->a, made->b,
                                       made->d, made->d, preference, CANDIDATES, found, &given);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        goto out;
    DT_TRY(check(status, err));
    for (int i = 0; i < given; i++) /* a result in another state has no valid algorithm */
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            found[(*count)++] = found[i];
out:
    if (preference != NULL)
        cublasLtMatmulPreferenceDestroy(preference);
    return st;
}

/* Gives the stored algorithm; returns false if there is none, or if the library no longer accepts
 * it. */
static bool recall(dt_cuda_state *state, dt_cuda_plan *made, const char *key)
{
    cublasLtMatmulHeuristicResult_t result;
    cublasLtMatmulAlgo_t algo;

    if (!dt_tuned_find(state->products->tuned, key, &algo, sizeof(algo)) ||
        cublasLtMatmulAlgoCheck(state->products->handle, made->desc, made->a, made->b, made->d,
                                made->d, &algo, &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > DT_CUDA_WORKSPACE_BYTES)
        return false;
    made->algo = algo;
    return true;
}

/* Tries the algorithms that may use a workspace first; if none of them runs, those that need
 * none. */
static dt_status find(bool *out, dt_cuda_plan *made, const trial &t, dt_error *err)
{
    const size_t workspaces[] = {DT_CUDA_WORKSPACE_BYTES, 0};
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    dt_status st = DT_OK;
    int count;

    *out = false;
    for (int i = 0; i < 2 && !*out; i++) {
        DT_TRY(ask(t, workspaces[i], found, &count, err));
        *out = fastest(&made->algo, t, found, count);
    }
out:
    return st;
}

dt_status dt_cuda_product_search(dt_cuda_state *state, dt_cuda_plan *made, const dt_cuda_product *p,
                                 const char *key, dt_error *err)
{
    dt_status st = DT_OK;
    trial t = {};

    DT_TRY(open_trial(&t, state, made, p, err));
    made->exists = recall(state, made, key) && time_algorithm(t, 0, &made->algo) >= 0;
    if (made->exists)
        goto out;
    DT_TRY(find(&made->exists, made, t, err));
    if (!made->exists)
        goto out;
    dt_tuned_keep(state->products->tuned, key, &made->algo, sizeof(made->algo));
    (void)recall(state, made, key); /* every process uses the choice that was stored first */
out:
    close_trial(&t);
    return st;
}

/* --- choosing between the fused product and separate kernels */

static const char *const ways[] = {"", "fused", "split"};

static dt_cuda_kind of_any_alignment(const dt_cuda_product *p)
{
    dt_cuda_kind kind = dt_cuda_product_kind(p);

    kind.align_a = kind.align_b = kind.align_d = kind.align_bias = kind.align_aux = 0;
    return kind;
}

static void write_way_key(char *key, const dt_cuda_state *state, const dt_cuda_kind *kind)
{
    char product[DT_TUNED_KEY_MAX];

    dt_cuda_product_key(product, state, kind);
    snprintf(key, DT_TUNED_KEY_MAX, "%.*s, in one piece or not", DT_TUNED_KEY_MAX - 32, product);
}

dt_cuda_way dt_cuda_product_way(dt_device *device, const dt_cuda_product *p)
{
    dt_cuda_state *state = dt_cuda_of(device);
    const char *wish = getenv("DTRUN_PRODUCTS");
    dt_cuda_kind kind = of_any_alignment(p);
    auto known = state->products->ways.find(kind);
    char key[DT_TUNED_KEY_MAX];
    unsigned char kept;

    for (int way = DT_CUDA_FUSED; wish != NULL && way <= DT_CUDA_SPLIT; way++)
        if (strcmp(wish, ways[way]) == 0)
            return (dt_cuda_way)way;
    if (known != state->products->ways.end())
        return known->second;
    write_way_key(key, state, &kind);
    if (dt_tuned_find(state->products->tuned, key, &kept, 1) &&
        (kept == DT_CUDA_FUSED || kept == DT_CUDA_SPLIT))
        return state->products->ways[kind] = (dt_cuda_way)kept;
    return state->recording ? DT_CUDA_FUSED : DT_CUDA_NOT_COMPARED;
}

dt_cuda_way dt_cuda_product_compare(dt_device *device, const dt_cuda_product *p,
                                    dt_cuda_work *fused, dt_cuda_work *split, void *self)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_cuda_kind kind = of_any_alignment(p);
    float one = -1.0f, several = -1.0f;
    char key[DT_TUNED_KEY_MAX];
    unsigned char kept;
    stopwatch watch;

    if (open_watch(&watch, NULL) == DT_OK) {
        one = time_work(state, watch, TRIALS, [=]() { return fused(self, NULL) == DT_OK; });
        several = time_work(state, watch, TRIALS, [=]() { return split(self, NULL) == DT_OK; });
    }
    close_watch(&watch);
    kept = one < 0 || (several >= 0 && several < 0.98f * one) ? DT_CUDA_SPLIT : DT_CUDA_FUSED;
    write_way_key(key, state, &kind);
    dt_tuned_keep(state->products->tuned, key, &kept, 1);
    if (kept != DT_CUDA_SPLIT)
        kept = DT_CUDA_FUSED;
    dt_log_debug("%s: in one piece %.3f ms, in several %.3f: %s", key, (double)one, (double)several,
                 ways[kept]);
    return state->products->ways[kind] = (dt_cuda_way)kept;
}
