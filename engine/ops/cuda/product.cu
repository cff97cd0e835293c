#include "engine/ops/cuda/product.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <new>

#include "engine/ops/cuda/tuned.h"

#define WORKSPACE_BYTES ((size_t)64 << 20)
#define CANDIDATES      8
#define TRIALS          3
#define ALIGN_MOST      256 /* more is of no use to any kernel */

/* What makes two products alike; no padding, since kinds are compared byte by byte. */
struct kind {
    int64_t m, n, k;
    uint32_t align_a, align_b, align_d, align_bias, align_aux, in, out, epilogue;
    uint8_t transpose_a, transpose_b, adds, unused[5];

    bool operator<(const kind &other) const { return memcmp(this, &other, sizeof(kind)) < 0; }
};

struct plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    bool exists; /* the library has a kernel */
};

struct dt_cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    dt_tuned *tuned;
    char machine[192]; /* card, driver, library: the beginning of every key */
    std::map<kind, plan> plans;
};

static dt_status check(cublasStatus_t status, const char *what, dt_error *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return DT_OK;
    return DT_FAIL(err, status == CUBLAS_STATUS_ALLOC_FAILED ? DT_ERR_NOMEM : DT_ERR_CUDA,
                   "matmul: %s: %s", what, cublasLtGetStatusString(status));
}

static cudaDataType_t type_of(dt_dtype dtype)
{
    return dtype == DT_F32 ? CUDA_R_32F : dtype == DT_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

/* --- life */

static dt_status name_machine(dt_cuda_products *products, dt_error *err)
{
    int index = 0, driver = 0;
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_check(cudaGetDevice(&index), "looking at a card", err));
    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, index), "looking at a card", err));
    DT_TRY(dt_cuda_check(cudaDriverGetVersion(&driver), "looking at the driver", err));
    snprintf(products->machine, sizeof(products->machine),
             "%.100s sm%d%d x%d driver %d cublaslt %zu", properties.name, properties.major,
             properties.minor, properties.multiProcessorCount, driver, cublasLtGetVersion());
    for (char *c = products->machine; *c != '\0'; c++)
        if (*c == '\t' || *c == '\n')
            *c = ' ';
out:
    return st;
}

dt_status dt_cuda_products_open(dt_cuda_products **out, dt_error *err)
{
    dt_cuda_products *products = new (std::nothrow) dt_cuda_products();
    dt_status st = DT_OK;

    *out = products;
    if (products == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the products");
    DT_TRY(check(cublasLtCreate(&products->handle), "cublasLtCreate", err));
    DT_TRY(
        dt_cuda_check(cudaMalloc(&products->workspace, WORKSPACE_BYTES), "matmul workspace", err));
    DT_TRY(name_machine(products, err));
    products->tuned = dt_tuned_open(NULL);
    if (products->tuned == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the products");
out:
    return st;
}

static void release(plan *made)
{
    if (made->desc != NULL)
        cublasLtMatmulDescDestroy(made->desc);
    if (made->a != NULL)
        cublasLtMatrixLayoutDestroy(made->a);
    if (made->b != NULL)
        cublasLtMatrixLayoutDestroy(made->b);
    if (made->d != NULL)
        cublasLtMatrixLayoutDestroy(made->d);
}

void dt_cuda_products_close(dt_cuda_products *products)
{
    if (products == NULL)
        return;
    for (auto &entry : products->plans)
        release(&entry.second);
    dt_tuned_close(products->tuned);
    if (products->workspace != NULL)
        cudaFree(products->workspace);
    if (products->handle != NULL)
        cublasLtDestroy(products->handle);
    delete products;
}

dt_tuned *dt_cuda_products_tuned(dt_cuda_products *products)
{
    return products->tuned;
}

const char *dt_cuda_products_machine(const dt_cuda_products *products)
{
    return products->machine;
}

/* --- describing one to the library */

template <typename V>
static dt_status set(plan *made, cublasLtMatmulDescAttributes_t which, V value, dt_error *err)
{
    return check(cublasLtMatmulDescSetAttribute(made->desc, which, &value, sizeof(value)),
                 "describe", err);
}

static cublasLtEpilogue_t epilogue_of(dt_cuda_epilogue epilogue)
{
    switch (epilogue) {
    case DT_CUDA_BIAS:
        return CUBLASLT_EPILOGUE_BIAS;
    case DT_CUDA_BIAS_GELU:
        return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case DT_CUDA_GELU_SLOPE:
        return CUBLASLT_EPILOGUE_DGELU;
    case DT_CUDA_SUM_B:
        return CUBLASLT_EPILOGUE_BGRADB;
    default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

/* What differs from call to call. */
static dt_status point(plan *made, const dt_cuda_product *p, dt_error *err)
{
    dt_status st = DT_OK;

    if (p->epilogue == DT_CUDA_BIAS || p->epilogue == DT_CUDA_BIAS_GELU)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias, err));
    if (p->epilogue == DT_CUDA_SUM_B)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)p->sum, err));
    if (p->epilogue == DT_CUDA_BIAS_GELU || p->epilogue == DT_CUDA_GELU_SLOPE)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p->aux, err));
out:
    return st;
}

static dt_status lay_out(cublasLtMatrixLayout_t *made, dt_dtype type, int64_t rows, int64_t cols,
                         dt_error *err)
{
    return check(
        cublasLtMatrixLayoutCreate(made, type_of(type), (uint64_t)rows, (uint64_t)cols, rows),
        "describe", err);
}

static dt_status describe(plan *made, const dt_cuda_product *p, bool tf32, dt_error *err)
{
    cublasComputeType_t compute =
        tf32 && p->in == DT_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int64_t a_rows = p->transpose_a ? p->k : p->m, b_rows = p->transpose_b ? p->n : p->k;
    dt_dtype bias = p->epilogue == DT_CUDA_SUM_B ? DT_F32 : p->in;
    dt_status st = DT_OK;

    DT_TRY(check(cublasLtMatmulDescCreate(&made->desc, compute, CUDA_R_32F), "describe", err));
    DT_TRY(set(made, CUBLASLT_MATMUL_DESC_TRANSA, p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, err));
    DT_TRY(set(made, CUBLASLT_MATMUL_DESC_TRANSB, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, err));
    if (p->epilogue != DT_CUDA_PLAIN)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p->epilogue), err));
    if (p->epilogue != DT_CUDA_PLAIN && p->epilogue != DT_CUDA_GELU_SLOPE)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(bias), err));
    if (p->epilogue == DT_CUDA_BIAS_GELU || p->epilogue == DT_CUDA_GELU_SLOPE)
        DT_TRY(set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p->m, err));
    DT_TRY(lay_out(&made->a, p->in, a_rows, p->transpose_a ? p->m : p->k, err));
    DT_TRY(lay_out(&made->b, p->in, b_rows, p->transpose_b ? p->k : p->n, err));
    DT_TRY(lay_out(&made->d, p->out, p->m, p->n, err));
    DT_TRY(point(made, p, err));
out:
    return st;
}

static uint32_t alignment(const void *pointer)
{
    uintptr_t lowest = (uintptr_t)pointer & -(uintptr_t)pointer;

    return lowest == 0 || lowest > ALIGN_MOST ? ALIGN_MOST : (uint32_t)lowest;
}

/* --- choosing the algorithm */

static cublasStatus_t multiply(dt_cuda_state *state, const plan *made, const dt_cuda_product *p,
                               void *d, const cublasLtMatmulAlgo_t *algo)
{
    const float one = 1.0f;

    return cublasLtMatmul(state->products->handle, made->desc, &one, p->a, made->a, p->b, made->b,
                          &p->beta, d, made->d, d, made->d, algo, state->products->workspace,
                          WORKSPACE_BYTES, state->stream);
}

/* Milliseconds of the best of TRIALS, or a negative number where the algorithm fails. */
static float time_algorithm(dt_cuda_state *state, const plan *made, const dt_cuda_product *p,
                            void *d, const cublasLtMatmulAlgo_t *algo, cudaEvent_t begin,
                            cudaEvent_t end)
{
    float best = -1.0f;

    for (int i = 0; i <= TRIALS; i++) {
        float ms;

        if (cudaEventRecord(begin, state->stream) != cudaSuccess ||
            multiply(state, made, p, d, algo) != CUBLAS_STATUS_SUCCESS ||
            cudaEventRecord(end, state->stream) != cudaSuccess ||
            cudaEventSynchronize(end) != cudaSuccess ||
            cudaEventElapsedTime(&ms, begin, end) != cudaSuccess)
            return -1.0f;
        if (i > 0 && (best < 0 || ms < best)) /* the first one warms up */
            best = ms;
    }
    return best;
}

/* The fastest of the candidates: one must be 2 % faster to displace one that the library thinks
 * better of. The first, where nothing can be timed. */
static dt_status search(dt_cuda_state *state, plan *made, const dt_cuda_product *p,
                        const cublasLtMatmulHeuristicResult_t *found, int count, dt_error *err)
{
    cudaEvent_t begin = NULL, end = NULL;
    void *copy = NULL, *d = p->d;
    float best = -1.0f;
    dt_status st = DT_OK;

    made->algo = found[0].algo;
    if (count == 1)
        return DT_OK;
    if (p->beta != 0.0f) { /* what D holds must stay */
        if (cudaMalloc(&copy, (size_t)p->m * (size_t)p->n * dt_dtype_bytes(p->out)) !=
            cudaSuccess) {
            (void)cudaGetLastError();
            return DT_OK;
        }
        d = copy;
    }
    DT_TRY(dt_cuda_check(cudaEventCreate(&begin), "choose", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&end), "choose", err));
    for (int i = 0; i < count; i++) {
        float ms = time_algorithm(state, made, p, d, &found[i].algo, begin, end);

        if (ms >= 0 && (best < 0 || ms < 0.98f * best)) {
            best = ms;
            made->algo = found[i].algo;
        }
    }
    (void)cudaGetLastError(); /* of a candidate that failed */
out:
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    if (copy != NULL)
        cudaFree(copy);
    return st;
}

template <typename V>
static dt_status prefer(cublasLtMatmulPreference_t preference,
                        cublasLtMatmulPreferenceAttributes_t which, V value, dt_error *err)
{
    return check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
                 "choose", err);
}

/* *count of them, best first by the library's own reckoning; none where it has no such kernel. */
static dt_status ask(dt_cuda_state *state, const plan *made, const dt_cuda_product *p,
                     cublasLtMatmulHeuristicResult_t *found, int *count, dt_error *err)
{
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t preference = NULL;
    int given = 0;
    cublasStatus_t status;
    dt_status st = DT_OK;

    *count = 0;
    DT_TRY(check(cublasLtMatmulPreferenceCreate(&preference), "choose", err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, WORKSPACE_BYTES, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions, err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p->a), err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p->b), err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p->d), err));
    DT_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p->d), err));
    status =
        cublasLtMatmulAlgoGetHeuristic(state->products->handle, made->desc, made->a, made->b,
                                       made->d, made->d, preference, CANDIDATES, found, &given);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        goto out;
    DT_TRY(check(status, "choose", err));
    for (int i = 0; i < given; i++) /* the rest of one that is not in this state says nothing */
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            found[(*count)++] = found[i];
out:
    if (preference != NULL)
        cublasLtMatmulPreferenceDestroy(preference);
    return st;
}

/* What was kept is taken only where the library still agrees to it. */
static bool recall(dt_cuda_state *state, plan *made, const char *key)
{
    cublasLtMatmulHeuristicResult_t result;
    cublasLtMatmulAlgo_t algo;

    if (!dt_tuned_find(state->products->tuned, key, &algo, sizeof(algo)) ||
        cublasLtMatmulAlgoCheck(state->products->handle, made->desc, made->a, made->b, made->d,
                                made->d, &algo, &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > WORKSPACE_BYTES)
        return false;
    made->algo = algo;
    return true;
}

static dt_status choose(dt_cuda_state *state, plan *made, const dt_cuda_product *p, const char *key,
                        dt_error *err)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    dt_status st = DT_OK;
    int count;

    made->exists = recall(state, made, key);
    if (made->exists)
        return DT_OK;
    DT_TRY(ask(state, made, p, found, &count, err));
    if (count == 0)
        return DT_OK;
    DT_TRY(search(state, made, p, found, count, err));
    made->exists = true;
    dt_tuned_keep(state->products->tuned, key, &made->algo, sizeof(made->algo));
    (void)recall(state, made, key); /* another process may have been first: all take its choice */
out:
    return st;
}

static kind kind_of(const dt_cuda_product *p)
{
    kind what = {p->m,
                 p->n,
                 p->k,
                 alignment(p->a),
                 alignment(p->b),
                 alignment(p->d),
                 alignment(p->epilogue == DT_CUDA_SUM_B ? p->sum : p->bias),
                 alignment(p->aux),
                 (uint32_t)p->in,
                 (uint32_t)p->out,
                 (uint32_t)p->epilogue,
                 p->transpose_a,
                 p->transpose_b,
                 p->beta != 0.0f,
                 {}};

    return what;
}

static void write_key(char *key, const dt_cuda_state *state, const kind *what)
{
    static const char *const epilogues[] = {"plain", "bias", "bias gelu", "gelu slope", "sum b"};
    dt_dtype in = (dt_dtype)what->in;

    snprintf(key, DT_TUNED_KEY_MAX,
             "%s; %c%c %lld x %lld x %lld, %s to %s%s, beta %d, %s, align %u %u %u %u %u",
             state->products->machine, what->transpose_a ? 't' : 'n', what->transpose_b ? 't' : 'n',
             (long long)what->m, (long long)what->n, (long long)what->k, dt_dtype_name(in),
             dt_dtype_name((dt_dtype)what->out), state->tf32 && in == DT_F32 ? " by tf32" : "",
             what->adds, epilogues[what->epilogue], what->align_a, what->align_b, what->align_d,
             what->align_bias, what->align_aux);
}

/* --- running one */

dt_status dt_cuda_product_try(dt_device *device, const dt_cuda_product *p, bool *done,
                              dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    kind what = kind_of(p);
    auto known = state->products->plans.find(what);
    dt_status st = DT_OK;

    *done = false;
    if (known == state->products->plans.end()) {
        char key[DT_TUNED_KEY_MAX];
        plan made = {};

        write_key(key, state, &what);
        st = describe(&made, p, state->tf32, err);
        if (st == DT_OK)
            st = choose(state, &made, p, key, err);
        if (st != DT_OK) {
            release(&made);
            return st;
        }
        known = state->products->plans.emplace(what, made).first;
    }
    if (!known->second.exists)
        return DT_OK;
    DT_TRY(point(&known->second, p, err));
    DT_TRY(check(multiply(state, &known->second, p, p->d, &known->second.algo), "product", err));
    *done = true;
out:
    return st;
}

dt_status dt_cuda_product_run(dt_device *device, const dt_cuda_product *p, dt_error *err)
{
    dt_status st = DT_OK;
    bool done;

    DT_TRY(dt_cuda_product_try(device, p, &done, err));
    if (!done)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "matmul: cuBLASLt has no algorithm for (%lld,%lld,%lld)",
                 (long long)p->m, (long long)p->n, (long long)p->k);
out:
    return st;
}
