#include "cublasLt.h"

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
    void *to[] = {&desc->a, &desc->b, &desc->epilogue, &desc->bias_type, &desc->bias};

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
    *out = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    results[0].algo.number = 0;
    results[1].algo.number = 1;
    *found = 2;
    return CUBLAS_STATUS_SUCCESS;
}

/* D (m,n) = A B + beta C + bias by row. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t)
{
    bool ta = desc->a == CUBLAS_OP_T, tb = desc->b == CUBLAS_OP_T;
    uint64_t m = ta ? la->cols : la->rows, k = ta ? la->rows : la->cols;
    uint64_t n = tb ? lb->rows : lb->cols, bk = tb ? lb->cols : lb->rows;
    float keep = *(const float *)beta;

    if (k != bk || ld->rows != m || ld->cols != n || la->type != lb->type)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) {
            uint64_t at = j * (uint64_t)ld->leading + i;
            double sum = 0.0;

            for (uint64_t l = 0; l < k; l++) {
                uint64_t ia = ta ? i * (uint64_t)la->leading + l : l * (uint64_t)la->leading + i;
                uint64_t ib = tb ? l * (uint64_t)lb->leading + j : j * (uint64_t)lb->leading + l;

                sum += (double)read(a, la->type, ia) * (double)read(b, lb->type, ib);
            }
            if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS)
                sum += (double)read(desc->bias, desc->bias_type, i);
            if (keep != 0.0f)
                sum += (double)keep * (double)read(c, ld->type, at);
            write(d, ld->type, at, (float)sum);
        }
    return CUBLAS_STATUS_SUCCESS;
}
