#include "engine/ops/cpu/matmul_int.h"

#include "engine/ops/cpu/rows_int.h"

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
