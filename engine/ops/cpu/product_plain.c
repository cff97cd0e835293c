/* product_plain: implements product.h without oneDNN, with plain loops over fp32, for builds without
 * that library whose work is done on GPUs (cmake -DDT_PARTS=engine). 16-bit types are computed by
 * matmul_wide (ops_int.h). The threads share the rows of c; a sum is over k in order.
 */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/cpu/cpu_int.h"
#include "engine/ops/cpu/product.h"

dt_status dt_cpu_products_new(struct dt_cpu_products **out, dt_error *err)
{
    *out = NULL;
    return DT_OK;
}

void dt_cpu_products_free(struct dt_cpu_products *products) {}

static void row_of_c(const dt_cpu_product *p, float *c, const float *a, const float *b, int64_t i)
{
    int64_t step = p->a_transposed ? p->m : 1;
    const float *row = a + (p->a_transposed ? i : i * p->k);

    for (int64_t l = 0; l < p->k; l++) {
        float factor = row[l * step];

        if (p->b_transposed)
            for (int64_t j = 0; j < p->n; j++)
                c[j] += factor * b[j * p->k + l];
        else
            for (int64_t j = 0; j < p->n; j++)
                c[j] += factor * b[l * p->n + j];
    }
}

dt_status dt_cpu_product_run(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, bool *done,
                             dt_error *err)
{
    const dt_cpu_product *p = product;
    size_t row_bytes = (size_t)p->n * sizeof(float);

    *done = p->type == DT_F32 && p->c_type == DT_F32;
    if (!*done)
        return DT_OK;
#pragma omp parallel for num_threads(device->threads)
    for (int64_t i = 0; i < p->m; i++) {
        float *row = (float *)c + i * p->n;

        dt_progress_made();
        if (!p->accumulate)
            memset(row, 0, row_bytes);
        if (p->bias)
            for (int64_t j = 0; j < p->n; j++)
                row[j] += ((const float *)bias)[j];
        row_of_c(p, row, a, b, i);
    }
    return DT_OK;
}
