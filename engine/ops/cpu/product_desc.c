#include "engine/ops/cpu/product_desc.h"

typedef struct matrix {
    int64_t rows, cols, row_stride, col_stride;
    dnnl_data_type_t type;
} matrix;

static dnnl_data_type_t type_of(dt_dtype dtype)
{
    return dtype == DT_BF16 ? dnnl_bf16 : dtype == DT_F16 ? dnnl_f16 : dnnl_f32;
}

static matrix matrix_of(int64_t rows, int64_t cols, bool transposed, dt_dtype dtype)
{
    matrix plain = {rows, cols, cols, 1, type_of(dtype)};
    matrix turned = {rows, cols, 1, rows, type_of(dtype)};

    return transposed ? turned : plain;
}

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t make(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const matrix *part[4],
                          const_dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t desc[4] = {NULL, NULL, NULL, NULL};
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < 4 && status == dnnl_success; i++) {
        if (part[i] == NULL)
            continue;
        dnnl_dims_t dims = {part[i]->rows, part[i]->cols};
        dnnl_dims_t strides = {part[i]->row_stride, part[i]->col_stride};
        status = dnnl_memory_desc_create_with_strides(&desc[i], 2, dims, part[i]->type, strides);
    }
    if (status == dnnl_success)
        status = dnnl_matmul_primitive_desc_create(out, engine, desc[0], desc[1], desc[2], desc[3],
                                                   attr);
    for (int i = 0; i < 4; i++)
        if (desc[i] != NULL)
            dnnl_memory_desc_destroy(desc[i]);
    return status;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

#else

static dnnl_status_t make(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const matrix *part[4],
                          const_dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t desc[4];
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < 4 && status == dnnl_success; i++) {
        if (part[i] == NULL)
            continue;
        dnnl_dims_t dims = {part[i]->rows, part[i]->cols};
        dnnl_dims_t strides = {part[i]->row_stride, part[i]->col_stride};
        status = dnnl_memory_desc_init_by_strides(&desc[i], 2, dims, part[i]->type, strides);
    }
    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&matmul, &desc[0], &desc[1],
                                       part[2] != NULL ? &desc[2] : NULL, &desc[3]);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(out, &matmul, attr, engine, NULL);
    return status;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

#endif

dnnl_status_t dt_cpu_product_desc_make(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                       const dt_cpu_product *product)
{
    matrix a = matrix_of(product->m, product->k, product->a_transposed, product->type);
    matrix b = matrix_of(product->k, product->n, product->b_transposed, product->type);
    matrix bias = matrix_of(1, product->n, false, product->type);
    matrix c = matrix_of(product->m, product->n, false, product->c_type);
    const matrix *part[4] = {&a, &b, product->bias ? &bias : NULL, &c};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);

    *out = NULL;
    if (status == dnnl_success && product->accumulate) {
        status = dnnl_post_ops_create(&ops);
        if (status == dnnl_success)
            status = append_sum(ops);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(attr, ops);
    }
    if (status == dnnl_success)
        status = make(out, engine, part, attr);
    if (ops != NULL)
        dnnl_post_ops_destroy(ops);
    if (attr != NULL)
        dnnl_primitive_attr_destroy(attr);
    return status;
}
