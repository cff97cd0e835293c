#include "cublasLt.h"

#include "emulator.h"

static float read(const void *at, cudaDataType_t type, uint64_t i)
{
    if (type == CUDA_R_32F)
        return ((const float *)at)[i];
    if (type == CUDA_R_16BF)
        return __bfloat162float(((const __nv_bfloat16 *)at)[i]);
    return __half2float(((const __half *)at)[i]);
}

static void write(void *at, cudaDataType_t type, uint64_t i, float value)
{
    if (type == CUDA_R_32F)
        ((float *)at)[i] = value;
    else if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)at)[i] = __float2bfloat16_rn(value);
    else
        ((__half *)at)[i] = __float2half_rn(value);
}

const char *cublasLtGetStatusString(cublasStatus_t)
{
    return "emulated";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t,
                                        cudaDataType_t)
{
    *out = new dt_emulated_desc();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    void *to[] = {&desc->a,    &desc->b,   &desc->epilogue,   &desc->bias_type,
                  &desc->bias, &desc->aux, &desc->aux_leading};

    memcpy(to[which], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t leading)
{
    *out = new dt_emulated_layout{type, rows, cols, leading};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = new dt_emulated_preference{{256, 256, 256, 256}, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t bytes)
{
    if (which >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
        memcpy(&preference->aligned[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
               bytes);
    if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        memcpy(&preference->workspace, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* Like the library, it lacks kernels: here with an epilogue for an odd m, and for a bias of another
 * type than D. */
static bool has_kernel(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t d)
{
    bool adds = desc->epilogue == CUBLASLT_EPILOGUE_BIAS ||
                desc->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;

    if (adds && desc->bias_type != d->type)
        return false;
    return desc->epilogue <= CUBLASLT_EPILOGUE_BIAS || d->rows % 2 == 0;
}

#define BREAKS 9 /* number of an algorithm that is listed, but fails when it is run */

/* It also lists algorithms that it cannot run: always the first one; all of them with an epilogue
 * if m is twice an odd number, and with working memory if n is a multiple of three. */
static bool all_break(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t d, size_t workspace)
{
    return (desc->epilogue > CUBLASLT_EPILOGUE_BIAS && d->rows % 4 == 2) ||
           (workspace > 0 && d->cols % 3 == 0);
}

/* Kernels read at most 16 bytes at once: a larger alignment makes no difference. */
static uint32_t alignment(const void *pointer)
{
    uint32_t bytes = 16;

    while ((uintptr_t)pointer % bytes != 0)
        bytes /= 2;
    return bytes;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    cublasLtMatmulAlgo_t algo = {1, {}};

    *found = 0;
    if (!has_kernel(desc, d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(algo.aligned, preference->aligned, sizeof(preference->aligned));
    algo.aligned[4] = alignment(desc->bias);
    algo.aligned[5] = alignment(desc->aux);
    results[0] = {{}, 0, CUBLAS_STATUS_NOT_SUPPORTED}; /* nothing, as `state` says */
    algo.number = BREAKS;
    results[1] = {algo, 0, CUBLAS_STATUS_SUCCESS};
    algo.number = 1;
    results[2] = {algo, 0, CUBLAS_STATUS_SUCCESS};
    algo.number = 2;
    results[3] = {algo, 0, CUBLAS_STATUS_SUCCESS};
    *found = all_break(desc, d, preference->workspace) ? 2 : 4;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    *result = {*algo, 0, CUBLAS_STATUS_SUCCESS};
    return has_kernel(desc, d) && (algo->number == 1 || algo->number == 2)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

size_t cublasLtGetVersion(void)
{
    return 1;
}

static double gelu_gate(double x)
{
    return 0.5 * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double g = gelu_gate(x);

    return g + x * g * (1.0 - g) * 2.0 * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
}

/* Sets sum[j] to the sums over k of B. */
static void sum_b(float *sums, const void *b, const dt_emulated_layout &lb, bool tb, uint64_t n,
                  uint64_t k)
{
    for (uint64_t j = 0; j < n; j++) {
        double sum = 0.0;

        for (uint64_t l = 0; l < k; l++)
            sum += (double)read(b, lb.type,
                                tb ? l * (uint64_t)lb.leading + j : j * (uint64_t)lb.leading + l);
        sums[j] = (float)sum;
    }
}

/* Computes D (m,n) = epilogue(A B + beta C). */
static void multiply(const dt_emulated_desc &desc, const void *a, const dt_emulated_layout &la,
                     const void *b, const dt_emulated_layout &lb, float keep, const void *c,
                     void *d, const dt_emulated_layout &ld)
{
    bool ta = desc.a == CUBLAS_OP_T, tb = desc.b == CUBLAS_OP_T;
    bool gelu = desc.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    uint64_t m = ld.rows, n = ld.cols, k = ta ? la.rows : la.cols;
    dt_emulated_open memory;

    if (desc.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        sum_b((float *)desc.bias, b, lb, tb, n, k);
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) {
            uint64_t at = j * (uint64_t)ld.leading + i;
            uint64_t aux = j * (uint64_t)desc.aux_leading + i;
            double sum = 0.0;

            for (uint64_t l = 0; l < k; l++) {
                uint64_t ia = ta ? i * (uint64_t)la.leading + l : l * (uint64_t)la.leading + i;
                uint64_t ib = tb ? l * (uint64_t)lb.leading + j : j * (uint64_t)lb.leading + l;

                sum += (double)read(a, la.type, ia) * (double)read(b, lb.type, ib);
            }
            if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS || gelu)
                sum += (double)read(desc.bias, desc.bias_type, i);
            if (keep != 0.0f)
                sum += (double)keep * (double)read(c, ld.type, at);
            if (gelu) {
                write(desc.aux, ld.type, aux, (float)sum);
                sum *= gelu_gate(sum);
            }
            if (desc.epilogue == CUBLASLT_EPILOGUE_DGELU)
                sum *= gelu_slope((double)read(desc.aux, ld.type, aux));
            write(d, ld.type, at, (float)sum);
        }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algo, void *, size_t, cudaStream_t stream)
{
    const void *pointers[DT_EMULATED_POINTERS] = {a, b, c, d, desc->bias, desc->aux};
    bool ta = desc->a == CUBLAS_OP_T, tb = desc->b == CUBLAS_OP_T;
    uint64_t m = ta ? la->cols : la->rows, k = ta ? la->rows : la->cols;
    uint64_t n = tb ? lb->rows : lb->cols, bk = tb ? lb->cols : lb->rows;
    float keep = *(const float *)beta;

    if (algo->number == 0)
        dt_emulated_refuse("an algorithm that the library has not named");
    if (algo->number == BREAKS)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < DT_EMULATED_POINTERS; i++)
        if (alignment(pointers[i]) < algo->aligned[i])
            dt_emulated_refuse("an algorithm that was found for pointers better aligned");
    if (k != bk || ld->rows != m || ld->cols != n || la->type != lb->type)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (desc->aux != NULL && (desc->aux_leading < (int64_t)m || desc->aux_leading % 8 != 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (desc->epilogue == CUBLASLT_EPILOGUE_BGRADB && desc->bias_type != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    dt_emulated_enqueue(stream, [=, what = *desc, of_a = *la, of_b = *lb, of_d = *ld]() {
        multiply(what, a, of_a, b, of_b, keep, c, d, of_d);
    });
    return CUBLAS_STATUS_SUCCESS;
}
