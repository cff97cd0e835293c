/* matmul: products through cuBLASLt, row-major tensors as the transposes that it knows.
 *
 *   forward          y^T (O,N)  = w^T' x^T      A = w (I,O) transposed, B = x (I,N); bias epilogue
 *   backward input   dx^T (I,N) = w^T dy^T      A = w (I,O),            B = dy (O,N)
 *   backward weight  dw^T (I,O) += x^T dy       A = x (I,N),            B = dy (O,N) transposed
 *
 * A plan (layouts and the algorithm) is made at the first call of a shape and kept: the candidates
 * that the library names are timed on the tensors of that call, except where that would change them
 * (a product that accumulates), where its first choice is taken.
 * fp32   true fp32 unless the device was opened with tf32 allowed
 * Sums   in fp32; the split of a long sum is the algorithm's, and the same from run to run while
 * the same algorithm is taken, so ties in the timing must not decide: only an algorithm that is
 *        more than 2 % faster displaces an earlier one, and algorithms that split through atomics
 *        are not asked for.
 */
#include <stdlib.h>
#include <string.h>

#include <map>
#include <new>
#include <tuple>

#include "engine/ops/cuda/columns.cuh"

#define WORKSPACE_BYTES ((size_t)64 << 20)
#define CANDIDATES      8
#define TRIALS          3

enum direction { FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT };

/* What makes two products alike. */
typedef std::tuple<int, int, int, int64_t, int64_t, int64_t, bool> shape;

struct plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
};

struct dt_cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    std::map<shape, plan> plans;
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
out:
    return st;
}

void dt_cuda_products_close(dt_cuda_products *products)
{
    if (products == NULL)
        return;
    for (auto &entry : products->plans) {
        cublasLtMatmulDescDestroy(entry.second.desc);
        cublasLtMatrixLayoutDestroy(entry.second.a);
        cublasLtMatrixLayoutDestroy(entry.second.b);
        cublasLtMatrixLayoutDestroy(entry.second.d);
    }
    if (products->workspace != NULL)
        cudaFree(products->workspace);
    if (products->handle != NULL)
        cublasLtDestroy(products->handle);
    delete products;
}

/* One product as the library sees it: D (m,n) = A B + beta D, column-major, leading dimensions as
 * stored. */
struct product {
    direction dir;
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    int64_t a_rows, a_cols, b_rows, b_cols;
    const void *a, *b;
    void *d;
    const void *bias; /* of m elements, in D's type where it is 16 bits wide; or NULL */
    dt_dtype in, out;
    float beta;
};

static dt_status describe(plan *made, const product *p, bool tf32, dt_error *err)
{
    cublasComputeType_t compute =
        tf32 && p->in == DT_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t op_a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    dt_status st = DT_OK;

    DT_TRY(check(cublasLtMatmulDescCreate(&made->desc, compute, CUDA_R_32F), "describe", err));
    DT_TRY(check(cublasLtMatmulDescSetAttribute(made->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_a,
                                                sizeof(op_a)),
                 "describe", err));
    DT_TRY(check(cublasLtMatmulDescSetAttribute(made->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_b,
                                                sizeof(op_b)),
                 "describe", err));
    if (p->bias != NULL) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        cudaDataType_t type = type_of(p->in);

        DT_TRY(check(cublasLtMatmulDescSetAttribute(made->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                    &epilogue, sizeof(epilogue)),
                     "describe", err));
        DT_TRY(check(cublasLtMatmulDescSetAttribute(made->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                    &type, sizeof(type)),
                     "describe", err));
    }
    DT_TRY(check(cublasLtMatrixLayoutCreate(&made->a, type_of(p->in), (uint64_t)p->a_rows,
                                            (uint64_t)p->a_cols, p->a_rows),
                 "describe", err));
    DT_TRY(check(cublasLtMatrixLayoutCreate(&made->b, type_of(p->in), (uint64_t)p->b_rows,
                                            (uint64_t)p->b_cols, p->b_rows),
                 "describe", err));
    DT_TRY(check(
        cublasLtMatrixLayoutCreate(&made->d, type_of(p->out), (uint64_t)p->m, (uint64_t)p->n, p->m),
        "describe", err));
out:
    return st;
}

static dt_status point_to_bias(const plan *made, const product *p, dt_error *err)
{
    if (p->bias == NULL)
        return DT_OK;
    return check(cublasLtMatmulDescSetAttribute(made->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                &p->bias, sizeof(p->bias)),
                 "bias", err);
}

static cublasStatus_t multiply(dt_cuda_state *state, const plan *made, const product *p,
                               const cublasLtMatmulAlgo_t *algo)
{
    const float one = 1.0f;

    return cublasLtMatmul(state->products->handle, made->desc, &one, p->a, made->a, p->b, made->b,
                          &p->beta, p->d, made->d, p->d, made->d, algo, state->products->workspace,
                          WORKSPACE_BYTES, state->stream);
}

/* Milliseconds of the best of TRIALS, or a negative number where the algorithm fails. */
static float time_algorithm(dt_cuda_state *state, const plan *made, const product *p,
                            const cublasLtMatmulAlgo_t *algo, cudaEvent_t begin, cudaEvent_t end)
{
    float best = -1.0f;

    for (int i = 0; i <= TRIALS; i++) {
        float ms;

        if (cudaEventRecord(begin, state->stream) != cudaSuccess ||
            multiply(state, made, p, algo) != CUBLAS_STATUS_SUCCESS ||
            cudaEventRecord(end, state->stream) != cudaSuccess ||
            cudaEventSynchronize(end) != cudaSuccess ||
            cudaEventElapsedTime(&ms, begin, end) != cudaSuccess)
            return -1.0f;
        if (i > 0 && (best < 0 || ms < best)) /* the first one warms up */
            best = ms;
    }
    return best;
}

static dt_status choose(dt_cuda_state *state, plan *made, const product *p, dt_error *err)
{
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    size_t workspace = WORKSPACE_BYTES;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    cublasLtMatmulPreference_t preference = NULL;
    cudaEvent_t begin = NULL, end = NULL;
    float best = -1.0f;
    dt_status st = DT_OK;
    int count = 0;

    DT_TRY(check(cublasLtMatmulPreferenceCreate(&preference), "choose", err));
    DT_TRY(check(cublasLtMatmulPreferenceSetAttribute(preference,
                                                      CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &workspace, sizeof(workspace)),
                 "choose", err));
    DT_TRY(check(cublasLtMatmulPreferenceSetAttribute(preference,
                                                      CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                      &reductions, sizeof(reductions)),
                 "choose", err));
    DT_TRY(check(cublasLtMatmulAlgoGetHeuristic(state->products->handle, made->desc, made->a,
                                                made->b, made->d, made->d, preference, CANDIDATES,
                                                found, &count),
                 "choose", err));
    if (count == 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "matmul: cuBLASLt has no algorithm for (%lld,%lld,%lld)",
                 (long long)p->m, (long long)p->n, (long long)p->k);
    made->algo = found[0].algo;
    if (p->beta != 0.0f || count == 1)
        goto out;
    DT_TRY(dt_cuda_check(cudaEventCreate(&begin), "choose", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&end), "choose", err));
    for (int i = 0; i < count; i++) {
        float ms = time_algorithm(state, made, p, &found[i].algo, begin, end);

        if (ms >= 0 && (best < 0 || ms < 0.98f * best)) {
            best = ms;
            made->algo = found[i].algo;
        }
    }
out:
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    if (preference != NULL)
        cublasLtMatmulPreferenceDestroy(preference);
    return st;
}

static dt_status run(dt_device *device, const product *p, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    shape key(p->dir, p->in, p->out, p->m, p->n, p->k, p->bias != NULL);
    auto known = state->products->plans.find(key);
    dt_status st = DT_OK;

    if (known == state->products->plans.end()) {
        plan made = {};

        known = state->products->plans.emplace(key, made).first;
        DT_TRY(describe(&known->second, p, state->tf32, err));
        DT_TRY(point_to_bias(&known->second, p, err));
        DT_TRY(choose(state, &known->second, p, err));
    }
    DT_TRY(point_to_bias(&known->second, p, err));
    DT_TRY(check(multiply(state, &known->second, p, &known->second.algo), "product", err));
out:
    if (st != DT_OK)
        state->products->plans.erase(key);
    return st;
}

dt_status dt_cuda_matmul_forward(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                 const dt_tensor *w, const dt_tensor *bias, dt_error *err)
{
    int64_t n = dt_tensor_rows(x), in = dt_tensor_cols(x), out = dt_tensor_cols(y);
    product p = {};

    DT_ASSERT(x->dtype == w->dtype && dt_tensor_rows(w) == out && dt_tensor_cols(w) == in &&
              dt_tensor_rows(y) == n);
    p.dir = FORWARD;
    p.m = out;
    p.n = n;
    p.k = in;
    p.transpose_a = true;
    p.a = w->data;
    p.a_rows = in;
    p.a_cols = out;
    p.b = x->data;
    p.b_rows = in;
    p.b_cols = n;
    p.d = y->data;
    p.bias = bias != NULL ? bias->data : NULL;
    p.in = x->dtype;
    p.out = y->dtype;
    return run(device, &p, err);
}

dt_status dt_cuda_matmul_backward_input(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        const dt_tensor *w, dt_error *err)
{
    int64_t n = dt_tensor_rows(dy), in = dt_tensor_cols(dx), out = dt_tensor_cols(dy);
    product p = {};

    DT_ASSERT(dy->dtype == w->dtype && dt_tensor_rows(w) == out && dt_tensor_cols(w) == in);
    p.dir = BACKWARD_INPUT;
    p.m = in;
    p.n = n;
    p.k = out;
    p.a = w->data;
    p.a_rows = in;
    p.a_cols = out;
    p.b = dy->data;
    p.b_rows = out;
    p.b_cols = n;
    p.d = dx->data;
    p.in = dy->dtype;
    p.out = dx->dtype;
    return run(device, &p, err);
}

/* --- the bias's gradient: column sums, in stripes of rows that are added in order */

template <typename T> __global__ void sum_stripes(float *parts, const T *dy, int64_t n, int64_t out)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t begin = n * blockIdx.y / gridDim.y, end = n * (blockIdx.y + 1) / gridDim.y;
    float sum = 0.0f;

    if (column >= out)
        return;
#pragma unroll 8
    for (int64_t row = begin; row < end; row++)
        sum += dt_to_float(dy[row * out + column]);
    parts[(int64_t)blockIdx.y * out + column] = sum;
}

static dt_status bias_gradient(dt_device *device, dt_tensor *dbias, const dt_tensor *dy,
                               dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(dy), out = dt_tensor_cols(dy);
    unsigned columns = (unsigned)dt_cuda_ceil(out, DT_CUDA_BLOCK);
    int64_t wanted = dt_cuda_ceil((int64_t)state->processors * 8, columns);
    unsigned stripes = (unsigned)(wanted < dt_cuda_ceil(n, 8) ? wanted : dt_cuda_ceil(n, 8));
    dt_status st = DT_OK;
    void *scratch;

    DT_TRY(dt_cuda_scratch(&scratch, device, (size_t)stripes * (size_t)out * sizeof(float), err));
    DT_CUDA_DISPATCH(dy->dtype, "matmul", err, {
        DT_CUDA_LAUNCH((sum_stripes<T>), dim3(columns, stripes), DT_CUDA_BLOCK, 0, state->stream,
                       (float *)scratch, (const T *)dy->data, n, out);
    });
    DT_TRY(dt_cuda_launched("matmul", err));
    DT_TRY(dt_columns_add(state, (float *)dbias->data, NULL, (const float *)scratch, stripes, out,
                          "matmul", err));
out:
    return st;
}

dt_status dt_cuda_matmul_backward_weight(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                         const dt_tensor *dy, const dt_tensor *x, dt_error *err)
{
    int64_t n = dt_tensor_rows(dy), in = dt_tensor_cols(x), out = dt_tensor_cols(dy);
    product p = {};
    dt_status st = DT_OK;

    DT_ASSERT(dw->dtype == DT_F32 && dy->dtype == x->dtype && dt_tensor_rows(dw) == out &&
              dt_tensor_cols(dw) == in && dt_tensor_rows(x) == n);
    p.dir = BACKWARD_WEIGHT;
    p.m = in;
    p.n = out;
    p.k = n;
    p.transpose_b = true;
    p.a = x->data;
    p.a_rows = in;
    p.a_cols = n;
    p.b = dy->data;
    p.b_rows = out;
    p.b_cols = n;
    p.d = dw->data;
    p.in = dy->dtype;
    p.out = DT_F32;
    p.beta = 1.0f;
    DT_TRY(run(device, &p, err));
    if (dbias != NULL && dbias->data != NULL)
        DT_TRY(bias_gradient(device, dbias, dy, err));
out:
    return st;
}
