/* product_int: declares what the files of the products share.
 *
 *   product.cu         describes a product to the library, keeps the plans, runs them
 *   product_search.cu  chooses the algorithm, and between a fused product and separate kernels
 */
#ifndef DT_ENGINE_OPS_CUDA_PRODUCT_INT_CUH
#define DT_ENGINE_OPS_CUDA_PRODUCT_INT_CUH

#include <string.h>

#include <map>

#include "engine/ops/cuda/product.cuh"

#define DT_CUDA_WORKSPACE_BYTES ((size_t)64 << 20)

/* Two products with equal values share a plan. There is no padding, since kinds are compared byte
 * by byte. */
struct dt_cuda_kind {
    int64_t m, n, k;
    uint32_t align_a, align_b, align_d, align_bias, align_aux, in, out, epilogue;
    uint8_t transpose_a, transpose_b, adds, unused[5];

    bool operator<(const dt_cuda_kind &other) const
    {
        return memcmp(this, &other, sizeof(dt_cuda_kind)) < 0;
    }
};

struct dt_cuda_plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    bool exists; /* the library has a working kernel */
};

struct dt_cuda_products {
    cublasLtHandle_t handle;
    void *workspace;
    dt_tuned *tuned;
    char machine[192]; /* GPU, driver, library: the start of every key */
    std::map<dt_cuda_kind, dt_cuda_plan> plans;
    std::map<dt_cuda_kind, dt_cuda_way> ways; /* kinds without their alignment */
};

dt_status dt_cuda_product_check(cublasStatus_t status, const char *what, dt_error *err);
cublasStatus_t dt_cuda_product_multiply(dt_cuda_state *state, const dt_cuda_plan *made,
                                        const dt_cuda_product *p, void *d,
                                        const cublasLtMatmulAlgo_t *algo);
/* Chooses made->algo for a described product; sets made->exists to false if none of the library's
 * algorithms runs. */
dt_status dt_cuda_product_search(dt_cuda_state *state, dt_cuda_plan *made, const dt_cuda_product *p,
                                 const char *key, dt_error *err);
dt_cuda_kind dt_cuda_product_kind(const dt_cuda_product *p);
/* Writes the key of a product, at most DT_TUNED_KEY_MAX bytes. */
void dt_cuda_product_key(char *key, const dt_cuda_state *state, const dt_cuda_kind *what);

#endif
