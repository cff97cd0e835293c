/* matmul: the products of a linear layer, and a product of 16-bit numbers in fp32.
 *
 * Formula    y = x w^T + bias      dx = dy w      dw += dy^T x, dbias += column sums of dy
 * Shapes     x,dx (N,I)  w,dw (O,I)  y,dy (N,O)  bias,dbias (O)
 */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/product.h"

/* --- 16-bit numbers in fp32, for processors on which oneDNN has no code for them */

/* Rows of c at a time, at least: with fewer, a product is too small to be efficient. */
#define ROWS_MIN 256

/* Widens a block of rows x cols, whose rows are `stride` apart, into contiguous fp32. */
static void widen_block(dt_device *device, float *out, const uint16_t *in, dt_dtype type,
                        int64_t rows, int64_t cols, int64_t stride)
{
#pragma omp parallel for num_threads(dt_cpu_threads(device, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        dt_row_widen(out + i * cols, in + i * stride, type, cols);
}

static void narrow_block(dt_device *device, uint16_t *out, dt_dtype type, const float *in,
                         int64_t rows, int64_t cols)
{
#pragma omp parallel for num_threads(dt_cpu_threads(device, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        dt_row_narrow(out + i * cols, type, in + i * cols, cols);
}

static int64_t rows_at_a_time(const dt_cpu_product *product)
{
    int64_t rows = product->k * product->n / (product->k + product->n);

    return dt_cpu_min(product->m, rows > ROWS_MIN ? rows : ROWS_MIN);
}

dt_status DT_CPU_NAME(matmul_wide)(dt_device *device, const dt_cpu_product *product, void *c,
                                   const void *a, const void *b, const void *bias, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t m = product->m, n = product->n, k = product->k, rows = rows_at_a_time(product);
    int64_t floats = k * n + rows * (k + n) + n;
    dt_dtype type = product->type;
    bool narrow = product->c_type != DT_F32;
    float *wide_a, *wide_b, *wide_c, *wide_bias;
    dt_cpu_scratch scratch;

    /* one allocation for all threads: their blocks are contiguous */
    DT_TRY(dt_cpu_scratch_take(&scratch, device, floats / device->threads + 1, err));
    wide_b = scratch.base;
    wide_a = wide_b + k * n;
    wide_c = wide_a + rows * k;
    wide_bias = wide_c + rows * n;
    widen_block(device, wide_b, b, type, k, n, n); /* all of b, whether it is transposed or not */
    if (product->bias)
        dt_row_widen(wide_bias, bias, type, n);
    for (int64_t i = 0; i < m; i += rows) {
        dt_cpu_product part = *product;
        float *part_c = narrow ? wide_c : (float *)c + i * n;
        bool done;

        part.m = dt_cpu_min(rows, m - i);
        part.type = part.c_type = DT_F32;
        if (product->a_transposed)
            widen_block(device, wide_a, (const uint16_t *)a + i, type, k, part.m, m);
        else
            widen_block(device, wide_a, (const uint16_t *)a + i * k, type, part.m, k, k);
        DT_TRY(dt_cpu_product_run(device, &part, part_c, wide_a, wide_b, wide_bias, &done, err));
        DT_ASSERT(done);
        if (narrow)
            narrow_block(device, (uint16_t *)c + i * n, type, part_c, part.m, n);
    }
out:
    return st;
}

/* Whether AMX computes products of this type; a constant for builds that need older processors. */
static inline bool has_amx(const dt_cpu_product *product)
{
#if defined(__AVX512BF16__)
    return product->type == DT_BF16 && dt_cpu_amx_offered();
#else
    (void)product;
    return false;
#endif
}

/* Values of k from which oneDNN is slower by a fifth than dt_cpu_product_vectors; with fewer it is as fast. */
#define LONG 8192

/* Whether dt_cpu_product_vectors computes it: weight gradients, and dx of the head. */
static inline bool is_for_vectors(const dt_cpu_product *product)
{
#if defined(__AVX512BF16__)
    return product->type == DT_BF16 && (product->a_transposed || product->k >= LONG);
#else
    (void)product;
    return false;
#endif
}

static dt_status multiply(dt_device *device, const dt_cpu_product *product, void *c, const void *a,
                          const void *b, const void *bias, dt_error *err)
{
    dt_status st = DT_OK;
    bool done;

    if (has_amx(product))
        return dt_cpu_product_amx(device, product, c, a, b, bias, err);
    if (is_for_vectors(product))
        return dt_cpu_product_vectors(device, product, c, a, b, bias, NULL, err);
    DT_TRY(dt_cpu_product_run(device, product, c, a, b, bias, &done, err));
    if (!done)
        DT_TRY(DT_CPU_NAME(matmul_wide)(device, product, c, a, b, bias, err));
out:
    return st;
}

/* Like matmul_few, with AMX, which takes as many rows at a time as a tile has. */
static dt_status few_with_amx(dt_device *device, const dt_cpu_product *product, void *y,
                              const void *x, const void *w, const void *bias, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < product->m; i += DT_CPU_AMX_SIDE) {
        dt_cpu_product part = *product;

        part.m = dt_cpu_min(DT_CPU_AMX_SIDE, product->m - i);
        DT_TRY(dt_cpu_product_amx_few(
            device, &part, (char *)y + (size_t)(i * part.n) * dt_dtype_bytes(part.c_type),
            (const char *)x + (size_t)(i * part.k) * dt_dtype_bytes(part.type), w, bias, err));
    }
out:
    return st;
}

/* Multiplies DT_CPU_FEW_ROWS rows at most. */
static dt_status multiply_few(dt_device *device, const dt_cpu_product *product, void *y,
                              const void *x, const void *w, const void *bias, dt_error *err)
{
    if (has_amx(product))
        return few_with_amx(device, product, y, x, w, bias, err);
#if defined(__AVX512BF16__)
    if (product->type == DT_BF16)
        return dt_cpu_product_few(device, product, y, x, w, bias, err);
#endif
    return DT_CPU_NAME(matmul_few)(device, product, y, x, w, bias, err);
}

dt_status DT_CPU_NAME(matmul_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                      const dt_tensor *w, const dt_tensor *bias, dt_error *err)
{
    dt_status st = DT_OK;
    dt_cpu_product product = {.m = dt_tensor_rows(x),
                              .n = dt_tensor_rows(w),
                              .k = dt_tensor_cols(x),
                              .b_transposed = true,
                              .bias = bias != NULL && bias->data != NULL,
                              .type = x->dtype,
                              .c_type = y->dtype};

    DT_ASSERT(dt_tensor_cols(w) == product.k && dt_tensor_rows(y) == product.m &&
              dt_tensor_cols(y) == product.n);
    DT_TRY(dt_row_check(x, "matmul", err));
    DT_TRY(dt_row_check(y, "matmul", err));
    DT_TRY((product.m > DT_CPU_FEW_ROWS ? multiply : multiply_few)(
        device, &product, y->data, x->data, w->data, product.bias ? bias->data : NULL, err));
out:
    return st;
}

dt_status DT_CPU_NAME(matmul_backward_input)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                             const dt_tensor *w, dt_error *err)
{
    dt_status st = DT_OK;
    dt_cpu_product product = {.m = dt_tensor_rows(dy),
                              .n = dt_tensor_cols(w),
                              .k = dt_tensor_cols(dy),
                              .type = dy->dtype,
                              .c_type = dx->dtype};

    DT_ASSERT(dt_tensor_rows(w) == product.k && dt_tensor_rows(dx) == product.m &&
              dt_tensor_cols(dx) == product.n);
    DT_TRY(dt_row_check(dy, "matmul", err));
    DT_TRY(dt_row_check(dx, "matmul", err));
    DT_TRY(multiply(device, &product, dx->data, dy->data, w->data, NULL, err));
out:
    return st;
}

#define COLUMNS 256 /* columns of dy at a time: their sums stay in the L1 cache */

/* out += column sums of dy. Each thread owns some columns and adds the rows in order. */
static dt_status add_column_sums(dt_device *device, dt_tensor *out, const dt_tensor *dy,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    int64_t rows = dt_tensor_rows(dy), cols = dt_tensor_cols(dy);
    dt_cpu_scratch scratch;

    DT_TRY(dt_cpu_scratch_take(&scratch, device, 2 * COLUMNS, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, rows *cols))
    {
        dt_cpu_share share = dt_cpu_share_mine(cols, 64);
        float *row_scratch = dt_cpu_scratch_mine(scratch);
        float *sums = row_scratch + COLUMNS;

        for (int64_t j = share.begin; j < share.end; j += COLUMNS) {
            int64_t n = dt_cpu_min(COLUMNS, share.end - j);
            float *total = (float *)out->data + j;

            memset(sums, 0, (size_t)n * sizeof *sums);
            for (int64_t i = 0; i < rows; i++) {
                const float *row = dt_row_read(dy, i * cols + j, n, row_scratch);
#pragma omp simd
                for (int64_t l = 0; l < n; l++)
                    sums[l] += row[l];
            }
            for (int64_t l = 0; l < n; l++)
                total[l] += sums[l];
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(matmul_backward_weight)(dt_device *device, dt_tensor *dw, dt_tensor *dbias,
                                              const dt_tensor *dy, const dt_tensor *x,
                                              dt_error *err)
{
    dt_status st = DT_OK;
    dt_cpu_product product = {.m = dt_tensor_cols(dy),
                              .n = dt_tensor_cols(x),
                              .k = dt_tensor_rows(dy),
                              .a_transposed = true,
                              .accumulate = true,
                              .type = dy->dtype,
                              .c_type = DT_F32};

    DT_ASSERT(dt_tensor_rows(x) == product.k);
    DT_TRY(dt_row_check(dy, "matmul", err));
    if (dw != NULL && dw->data != NULL) {
        DT_ASSERT(dw->dtype == DT_F32 && dt_tensor_rows(dw) == product.m &&
                  dt_tensor_cols(dw) == product.n);
        if (is_for_vectors(&product) && !has_amx(&product))
            return dt_cpu_product_vectors(device, &product, dw->data, dy->data, x->data, NULL,
                                          dbias != NULL ? dbias->data : NULL, err);
        DT_TRY(multiply(device, &product, dw->data, dy->data, x->data, NULL, err));
    }
    if (dbias != NULL && dbias->data != NULL)
        DT_TRY(add_column_sums(device, dbias, dy, err));
out:
    return st;
}
