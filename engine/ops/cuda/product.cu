#include "engine/ops/cuda/product.cuh"

#include <stdio.h>
#include <stdlib.h>

#include <new>

#include "engine/ops/cuda/tuned.h"

/* No kernel benefits from more. A larger bound would distinguish tensors that only differ in where an arena
 * placed them, whose products could then run with different algorithms and give other bits. */
#define ALIGN_MOST 16

dt_status dt_cuda_product_check(cublasStatus_t status, const char *what, dt_error *err)
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

/* --- opening and closing */

static dt_status name_machine(dt_cuda_products *products, dt_error *err)
{
    int index = 0, driver = 0;
    cudaDeviceProp properties;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_check(cudaGetDevice(&index), "querying a GPU", err));
    DT_TRY(dt_cuda_check(cudaGetDeviceProperties(&properties, index), "querying a GPU", err));
    DT_TRY(dt_cuda_check(cudaDriverGetVersion(&driver), "querying the driver", err));
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
    DT_TRY(dt_cuda_product_check(cublasLtCreate(&products->handle), "cublasLtCreate", err));
    DT_TRY(dt_cuda_check(cudaMalloc(&products->workspace, DT_CUDA_WORKSPACE_BYTES),
                         "matmul workspace", err));
    DT_TRY(name_machine(products, err));
    products->tuned = dt_tuned_open(NULL);
    if (products->tuned == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the products");
out:
    return st;
}

static void release(dt_cuda_plan *made)
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

/* --- describing a product to the library */

template <typename V>
static dt_status set(dt_cuda_plan *made, cublasLtMatmulDescAttributes_t which, V value,
                     dt_error *err)
{
    return dt_cuda_product_check(
        cublasLtMatmulDescSetAttribute(made->desc, which, &value, sizeof(value)), "describe", err);
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

/* Sets the pointers, which change from call to call. */
static dt_status point(dt_cuda_plan *made, const dt_cuda_product *p, dt_error *err)
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
    return dt_cuda_product_check(
        cublasLtMatrixLayoutCreate(made, type_of(type), (uint64_t)rows, (uint64_t)cols, rows),
        "describe", err);
}

static dt_status describe(dt_cuda_plan *made, const dt_cuda_product *p, bool tf32, dt_error *err)
{
    cublasComputeType_t compute =
        tf32 && p->in == DT_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    int64_t a_rows = p->transpose_a ? p->k : p->m, b_rows = p->transpose_b ? p->n : p->k;
    dt_dtype bias = p->epilogue == DT_CUDA_SUM_B ? DT_F32 : p->in;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_product_check(cublasLtMatmulDescCreate(&made->desc, compute, CUDA_R_32F),
                                 "describe", err));
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

/* Returns the smaller alignment of C and D: cuBLASLt gets one layout for both. */
static uint32_t alignment_of_sums(const dt_cuda_product *p)
{
    uint32_t d = alignment(p->d), c = alignment(p->c);

    return c < d ? c : d;
}

dt_cuda_kind dt_cuda_product_kind(const dt_cuda_product *p)
{
    dt_cuda_kind what = {p->m,
                         p->n,
                         p->k,
                         alignment(p->a),
                         alignment(p->b),
                         alignment_of_sums(p),
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

void dt_cuda_product_key(char *key, const dt_cuda_state *state, const dt_cuda_kind *what)
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

/* --- running a product */

cublasStatus_t dt_cuda_product_multiply(dt_cuda_state *state, const dt_cuda_plan *made,
                                        const dt_cuda_product *p, void *d,
                                        const cublasLtMatmulAlgo_t *algo)
{
    const float one = 1.0f;

    return cublasLtMatmul(state->products->handle, made->desc, &one, p->a, made->a, p->b, made->b,
                          &p->beta, p->c != NULL ? p->c : d, made->d, d, made->d, algo,
                          state->products->workspace, DT_CUDA_WORKSPACE_BYTES, state->stream);
}

dt_status dt_cuda_product_try(dt_device *device, const dt_cuda_product *p, bool *done,
                              dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    dt_cuda_kind what = dt_cuda_product_kind(p);
    auto known = state->products->plans.find(what);
    dt_status st = DT_OK;

    *done = false;
    if (known == state->products->plans.end()) {
        char key[DT_TUNED_KEY_MAX];
        dt_cuda_plan made = {};

        dt_cuda_product_key(key, state, &what);
        st = describe(&made, p, state->tf32, err);
        if (st == DT_OK)
            st = dt_cuda_product_search(state, &made, p, key, err);
        if (st != DT_OK) {
            release(&made);
            return st;
        }
        known = state->products->plans.emplace(what, made).first;
    }
    if (!known->second.exists)
        return DT_OK;
    DT_TRY(point(&known->second, p, err));
    DT_TRY(dt_cuda_product_check(
        dt_cuda_product_multiply(state, &known->second, p, p->d, &known->second.algo), "product",
        err));
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
