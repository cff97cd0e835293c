/* product: computes matrix products on a GPU, with cuBLASLt; and what product.cu and product_search.cu
 * share.
 *
 *   D (m,n) = epilogue(A B + beta C)     C is D or another matrix; column-major: row-major tensors
 *                                        are passed as their transposes
 * Plans      layouts and the algorithm are chosen at the first product of a kind and kept. If no choice is
 *            stored (tuned.h), the candidates that the library proposes are run and timed on the tensors of
 *            that call; those that accumulate in D run on a copy of D. A stored algorithm is run once as a
 *            check. Algorithms that fail are not used
 * Pieces     an epilogue may be slower than separate kernels of dtrun after the product: both are timed once
 *            for a shape, and the choice is stored likewise. DTRUN_PRODUCTS=fused or split forces one of them
 * fp32       true fp32 unless the device was opened with tf32 allowed
 * Sums       in fp32. The algorithm decides how a long sum is split; algorithms that use atomics are excluded.
 *            The same algorithm gives the same bits
 * Alignment  the alignment of a call's pointers is part of its kind: parameters start at any address
 *
 *   product.cu         describes a product to the library, keeps the plans, runs them
 *   product_search.cu  chooses the algorithm, and between a fused product and separate kernels
 */
#ifndef DT_ENGINE_OPS_CUDA_PRODUCT_CUH
#define DT_ENGINE_OPS_CUDA_PRODUCT_CUH

#include <map>
#include <string.h>

#include "engine/ops/cuda/cuda_int.cuh"

enum dt_cuda_epilogue {
    DT_CUDA_PLAIN,
    DT_CUDA_BIAS,       /* + bias[row]; D of A's type */
    DT_CUDA_BIAS_GELU,  /* aux := A B + bias, D := gelu_tanh of that before it is rounded */
    DT_CUDA_GELU_SLOPE, /* D := A B times gelu_tanh's slope at aux */
    DT_CUDA_SUM_B       /* and sum[column] := sums over k of B, F32 */
};

struct dt_cuda_product {
    int64_t m, n, k;
    bool transpose_a, transpose_b; /* A is stored (k,m), B (n,k) */
    const void *a, *b;
    const void *c; /* (m,n), in the type of D; NULL: D itself */
    void *d;
    dt_dtype in, out; /* of A and B; of D */
    float beta;       /* 0 or 1 */
    dt_cuda_epilogue epilogue;
    const void *bias; /* m, in the type of A; the library requires that of D */
    void *aux;        /* (m,n), in the type of D */
    float *sum;       /* n */
};

dt_status dt_cuda_product_run(dt_device *device, const dt_cuda_product *product, dt_error *err);

/* Like dt_cuda_product_run. *done false: the library has no working kernel for this product, and
 * the output is unspecified. */
dt_status dt_cuda_product_try(dt_device *device, const dt_cuda_product *product, bool *done,
                              dt_error *err);

enum dt_cuda_way { DT_CUDA_NOT_COMPARED, DT_CUDA_FUSED, DT_CUDA_SPLIT };

/* Returns the faster way for a product with this epilogue, or NOT_COMPARED if it is not known
 * yet. */
dt_cuda_way dt_cuda_product_way(dt_device *device, const dt_cuda_product *product);
/* Measures both ways by running each several times, stores the choice and returns it. */
typedef dt_status dt_cuda_work(void *self, dt_error *err);
dt_cuda_way dt_cuda_product_compare(dt_device *device, const dt_cuda_product *product,
                                    dt_cuda_work *fused, dt_cuda_work *split, void *self);

/* Return the store of algorithms, and the start of its keys: GPU, driver and library. */
struct dt_tuned *dt_cuda_products_tuned(dt_cuda_products *products);
const char *dt_cuda_products_machine(const dt_cuda_products *products);

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
