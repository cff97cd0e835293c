/* hopper_map: makes tensor maps with the driver, whose library is not linked: the runtime gives the
 * function's address. */
#include "engine/ops/cuda/hopper_map.cuh"

#include "engine/ops/cuda/cuda_int.cuh"

typedef CUresult encode_function(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                 const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                 const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static dt_status find_encode(encode_function **out, dt_error *err)
{
    static encode_function *known; /* the same for all threads */
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *function = NULL;
    dt_status st = DT_OK;

    if (known == NULL) {
        DT_TRY(dt_cuda_check(
#if CUDART_VERSION >= 12050
            cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                             cudaEnableDefault, &found),
#else
            cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found),
#endif
            "cuTensorMapEncodeTiled", err));
        if (found != cudaDriverEntryPointSuccess || function == NULL)
            DT_THROW(err, DT_ERR_UNSUPPORTED, "the driver has no cuTensorMapEncodeTiled");
        known = (encode_function *)function;
    }
    *out = known;
out:
    return st;
}

/* The dimensions are in the order of their strides, as the driver requires: elements, heads, rows,
 * sequences. */
dt_status dt_tensor_map_make(dt_tensor_map *out, const dt_heads_in_memory *x, unsigned box_rows,
                             dt_error *err)
{
    cuuint64_t sizes[4] = {(cuuint64_t)x->width, (cuuint64_t)x->heads, (cuuint64_t)x->rows,
                           (cuuint64_t)x->sequences};
    cuuint64_t strides[3] = {(cuuint64_t)x->width * 2, (cuuint64_t)x->row_stride * 2,
                             (cuuint64_t)x->sequence_stride * 2};
    cuuint32_t box[4] = {64, 1, box_rows, 1}, every[4] = {1, 1, 1, 1};
    encode_function *encode = NULL;
    dt_status st = DT_OK;
    CUresult result;

    DT_TRY(find_encode(&encode, err));
    /* also correct for fp16: the types differ only in the fill value outside the tensor, which is
     * zero here */
    result = encode(out, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, (void *)x->data, sizes, strides, box,
                    every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the driver cannot make a tensor map of %lld rows of %lld heads: error %d",
                 (long long)x->rows, (long long)x->heads, (int)result);
out:
    return st;
}
