/* product: one matrix product on a card, through cuBLASLt.
 *
 *   D (m,n) = epilogue(A B + beta C)     C is D or another; column-major, which is how the
 *                                        library sees the transposes of row-major tensors
 * Plans      layouts and the algorithm are chosen at the first product of a kind and kept. The
 *            candidates that the library names are run and timed on the tensors of that call, those
 *            that accumulate in D on a copy of its size, unless the choice is known from before (tuned.h);
 *            that one is run once too. What fails is not taken
 * Pieces     what an epilogue does may be faster in kernels of our own behind the product: both are
 *            timed once for a shape, and kept likewise. DTRUN_PRODUCTS=fused, split: that one always
 * fp32       true fp32 unless the device was opened with tf32 allowed
 * Sums       in fp32. How a long sum is split is the algorithm's; those that split through atomics
 *            are not asked for. The same algorithm gives the same bits
 * Alignment  what the pointers of a call have is part of its kind: parameters begin anywhere
 */
#ifndef DT_ENGINE_OPS_CUDA_PRODUCT_CUH
#define DT_ENGINE_OPS_CUDA_PRODUCT_CUH

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
    const void *bias; /* m, in the type of A; the library wants that of D */
    void *aux;        /* (m,n), in the type of D */
    float *sum;       /* n */
};

dt_status dt_cuda_product_run(dt_device *device, const dt_cuda_product *product, dt_error *err);

/* The same; *done false: the library has no working kernel for this, and the output is unspecified. */
dt_status dt_cuda_product_try(dt_device *device, const dt_cuda_product *product, bool *done,
                              dt_error *err);

enum dt_cuda_way { DT_CUDA_NOT_COMPARED, DT_CUDA_FUSED, DT_CUDA_SPLIT };

/* Which way is the faster one for a product with this epilogue. */
dt_cuda_way dt_cuda_product_way(dt_device *device, const dt_cuda_product *product);
/* Finds it out, by running both several times, and remembers. */
typedef dt_status dt_cuda_work(void *self, dt_error *err);
dt_cuda_way dt_cuda_product_compare(dt_device *device, const dt_cuda_product *product,
                                    dt_cuda_work *fused, dt_cuda_work *split, void *self);

/* Where algorithms are kept, and how their keys begin: card, driver and library. */
struct dt_tuned *dt_cuda_products_tuned(dt_cuda_products *products);
const char *dt_cuda_products_machine(const dt_cuda_products *products);

#endif
