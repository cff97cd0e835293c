/* product: computes matrix products on the CPU: with oneDNN, or with AMX, the matrix unit of Intel's server
 * processors.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c]
 * Shapes     a is stored as (m,k), or as (k,m) if a_transposed; b as (k,n), or as (n,k) if b_transposed.
 *            All are row-major: with these, oneDNN's AVX-512 kernels, with and without bf16
 *            instructions, are within a tenth of the speed of packed layouts (docs/notes/training.md)
 * Types      a and b: type; c: c_type; bias: type. Sums are fp32.
 * Missing    oneDNN has no fast code for bf16 without AVX-512, nor for f16 without AVX512-FP16, and its
 *            AMX code is wrong if k is not a multiple of 32: ops_int.h has code for these. Where there is AMX,
 *            dt_cpu_product_amx computes bf16
 * Threads    those of the device; called outside a parallel region
 * Errors     DT_ERR_UNSUPPORTED with oneDNN's status if it refuses; DT_ERR_NOMEM
 */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_H
#define DT_ENGINE_OPS_CPU_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/device/device.h"
#include "engine/tensor.h"

typedef struct dt_cpu_product {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    bool accumulate, bias;
    dt_dtype type, c_type;
} dt_cpu_product;

struct dt_cpu_products;

dt_status dt_cpu_products_new(struct dt_cpu_products **out, dt_error *err);
void dt_cpu_products_free(struct dt_cpu_products *products);

/* Computes the product. bias is read only if product->bias. Sets *done to false, and leaves c
 * unchanged, if there is no usable code for the type; there always is for fp32. */
dt_status dt_cpu_product_run(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, bool *done,
                             dt_error *err);

/* amx: Intel's matrix unit: whether there is one, and small products of packed operands within one thread.
 *
 * Unit       eight registers, here of 16 rows of 64 bytes each. An instruction adds the product of two registers of
 *            bf16 to one of fp32; it treats subnormal numbers, in operands and sums, as zero
 * Order      a sum adds pairs of k in ascending order, as the instruction does; the order depends on k alone
 */

#define DT_CPU_AMX_SIDE 16 /* rows of a register, and words of 32 bits in a row */

/* Returns whether the processor and the kernel offer AMX to this process. The first call asks the kernel. */
bool dt_cpu_amx_offered(void);

/* Prepares the registers for this thread; dt_cpu_amx_close() gives them back. Between the two calls a thread may
 * compute products. They abort without dt_cpu_amx_offered(). */
void dt_cpu_amx_open(void);
void dt_cpu_amx_close(void);

/* c(m,n) = a(m,k) b(k,n), or c += with `accumulate`. Elements of a and b are words: two bf16 values of k, as in
 * tile_int.h. a: element (i,p) at a[i * a_row + p]; b: element (p,j) at b[j / 32 * b_panel + p * b_row + j % 32].
 * m and k are multiples of DT_CPU_AMX_SIDE, n of 32; rows are fastest if they begin at multiples of 64 bytes. */
typedef struct dt_cpu_amx_product {
    float *c;
    const float *a, *b;
    int64_t m, n, k; /* k: words */
    int64_t c_row, a_row, b_row, b_panel;
    bool accumulate;
} dt_cpu_amx_product;

void dt_cpu_amx_multiply(const dt_cpu_amx_product *product);

/* product_vectors: computes a product of bf16 numbers with AVX512_BF16.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c], as above; row_sums(m) += sums of the rows of a, if it is not
 *            NULL, for a_transposed alone: with a = dy^T they are the gradient of a bias
 * Types      a, b and bias: BF16; c: F32, or BF16 without `accumulate`; row_sums: F32; sums are fp32
 * Method     c is computed in blocks whose sums stay in the L2 cache. A thread packs what a block needs of a chunk of
 *            k right before its products, and prefetches the next chunk meanwhile
 * Order      sums add pairs of k in ascending order, as the instruction does; the order depends on k alone
 * Precision  the instruction treats subnormal numbers, in operands and sums, as zero
 * Why        of oneDNN's rate without sums of rows, on Zen 5: 1.12 times for weight gradients, 1.2 times for long k;
 *            0.97 times for the others (docs/notes/training.md)
 */

/* Needs AVX512_BF16, which a build without it answers by DT_ERR_UNSUPPORTED. Errors: DT_ERR_NOMEM */
dt_status dt_cpu_product_vectors(dt_device *device, const dt_cpu_product *product, void *c,
                                 const void *a, const void *b, const void *bias, float *row_sums,
                                 dt_error *err);

/* product_few: y = x w^T + bias for few rows of x, bf16 numbers with AVX512_BF16, as in generation token by token.
 *
 * Types      x, w and bias: BF16; y: F32 or BF16; sums are fp32
 * Method     w is read once, as it is stored, and multiplied with all rows of x; both are read along k, and the lanes of
 *            sums are added at the end
 * Order      depends on k alone: a row of y has the same bits for any thread count, and for any other rows
 * Precision  as above
 * Why        products in fp32 (matmul_few.c) have to widen both, and take twice as many instructions for a product
 */

/* Needs AVX512_BF16, as above; b_transposed, without `accumulate`. Errors: DT_ERR_NOMEM */
dt_status dt_cpu_product_few(dt_device *device, const dt_cpu_product *product, void *y,
                             const void *x, const void *w, const void *bias, dt_error *err);

/* product_amx: computes a product of bf16 numbers with AMX, the matrix unit of Intel's server processors.
 *
 * Formula    c(m,n) = a(m,k) b(k,n) [+ bias(n)] [+ c], as above
 * Types      a, b and bias: BF16; c: F32, or BF16 without `accumulate`; sums are fp32
 * Method     c is computed in blocks that stay in the L2 cache. For a block, parts of a and b are packed into
 *            tiles of 16 x 32 numbers, filled up with zeros; a step of the inner loop multiplies two tiles of each
 * Order      a sum adds pairs of k in ascending order, as the instruction does; the order depends on k alone
 * Precision  AMX treats subnormal numbers, in operands and sums, as zero
 * Why        oneDNN's code is 1.5 to 4 times as slow, depending on which operand is transposed, and wrong if k
 *            is not a multiple of 32 (product.c)
 */

/* Needs dt_cpu_amx_offered(). Errors: DT_ERR_NOMEM */
dt_status dt_cpu_product_amx(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, dt_error *err);

/* The same for m of at most 16, with b_transposed: y = x w^T + bias, as in generation. w is read once, as it is
 * stored. The order of a sum depends on k alone here too: a row has the same bits whatever the other rows are. */
dt_status dt_cpu_product_amx_few(dt_device *device, const dt_cpu_product *product, void *y,
                                 const void *x, const void *w, const void *bias, dt_error *err);

#endif
