/* product: computes a matrix product with oneDNN. */
#include "engine/ops/cpu/product.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/ops/cpu/cpu_int.h"

/* product_desc: creates oneDNN's description of a product; the only code that differs between
 * oneDNN 2 and 3. */

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

/* Creates *out, which the caller destroys. Returns dnnl_unimplemented if oneDNN has no code for the
 * product. */
static dnnl_status_t cpu_product_desc_make(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
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

/* --- oneDNN's primitives, one per shape */

/* A shape: oneDNN's primitive and its memory objects, which get the pointers of each call. */
typedef struct entry {
    dt_cpu_product key;
    bool lacking; /* oneDNN has no usable code for the type; there is no primitive */
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, bias, c;
} entry;

struct dt_cpu_products {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    entry *entries; /* searched linearly: a model has a few dozen shapes */
    int count;
    int64_t capacity;
};

static dt_status dnnl_check(dnnl_status_t status, const char *what, dt_error *err)
{
    if (status == dnnl_success)
        return DT_OK;
    if (status == dnnl_out_of_memory)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a matrix product (%s)", what);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "oneDNN cannot compute a matrix product (%s, status %d)", what, (int)status);
}

dt_status dt_cpu_products_new(struct dt_cpu_products **out, dt_error *err)
{
    dt_status st = DT_OK;
    struct dt_cpu_products *products = calloc(1, sizeof *products);

    *out = NULL;
    if (products == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the cpu device");
    DT_TRY(dnnl_check(dnnl_engine_create(&products->engine, dnnl_cpu, 0), "engine", err));
    DT_TRY(dnnl_check(
        dnnl_stream_create(&products->stream, products->engine, dnnl_stream_default_flags),
        "stream", err));
    *out = products;
    products = NULL;
out:
    dt_cpu_products_free(products);
    return st;
}

static void entry_release(entry *e)
{
    dnnl_memory_t views[] = {e->a, e->b, e->bias, e->c};

    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (views[i] != NULL)
            dnnl_memory_destroy(views[i]);
    if (e->primitive != NULL)
        dnnl_primitive_destroy(e->primitive);
}

void dt_cpu_products_free(struct dt_cpu_products *products)
{
    if (products == NULL)
        return;
    for (int i = 0; i < products->count; i++)
        entry_release(&products->entries[i]);
    free(products->entries);
    if (products->stream != NULL)
        dnnl_stream_destroy(products->stream);
    if (products->engine != NULL)
        dnnl_engine_destroy(products->engine);
    free(products);
}

static bool same(const dt_cpu_product *x, const dt_cpu_product *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->a_transposed == y->a_transposed &&
           x->b_transposed == y->b_transposed && x->accumulate == y->accumulate &&
           x->bias == y->bias && x->type == y->type && x->c_type == y->c_type;
}

/* Returns whether oneDNN's code for a product of 16-bit numbers is slow or wrong.
 *
 * Its AMX code is wrong if k is not a multiple of 32, the number of values of k in a tile: it multiplies the memory
 * after the end of a row of a by zeros, so that a NaN of one row reaches another row of c (uxlfoundation/oneDNN
 * issue 5717, up to 3.14). With k = 63 it adds uninitialized memory, or ends with SIGILL (issue 1661, in 2.6.3 as
 * well).
 */
static bool is_unusable(const_dnnl_primitive_desc_t desc, const dt_cpu_product *product)
{
    const char *name = "";

    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, "ref", 3) == 0 || (strstr(name, "amx") != NULL && product->k % 32 != 0);
}

static dt_status view_make(dnnl_memory_t *out, const_dnnl_primitive_desc_t desc, dnnl_query_t what,
                           int index, dnnl_engine_t engine, dt_error *err)
{
    return dnnl_check(dnnl_memory_create(out, dnnl_primitive_desc_query_md(desc, what, index),
                                         engine, DNNL_MEMORY_NONE),
                      "operand", err);
}

static dt_status entry_make(entry *out, struct dt_cpu_products *products, const dt_cpu_product *key,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = cpu_product_desc_make(&desc, products->engine, key);

    memset(out, 0, sizeof *out);
    out->key = *key;
    if (key->type != DT_F32 &&
        (status == dnnl_unimplemented || (status == dnnl_success && is_unusable(desc, key)))) {
        out->lacking = true;
        goto out;
    }
    DT_TRY(dnnl_check(status, "description", err));
    DT_TRY(dnnl_check(dnnl_primitive_create(&out->primitive, desc), "primitive", err));
    DT_TRY(view_make(&out->a, desc, dnnl_query_src_md, 0, products->engine, err));
    DT_TRY(view_make(&out->b, desc, dnnl_query_weights_md, 0, products->engine, err));
    DT_TRY(view_make(&out->c, desc, dnnl_query_dst_md, 0, products->engine, err));
    if (key->bias)
        DT_TRY(view_make(&out->bias, desc, dnnl_query_weights_md, 1, products->engine, err));
out:
    if (desc != NULL)
        dnnl_primitive_desc_destroy(desc);
    if (st != DT_OK)
        entry_release(out);
    return st;
}

static dt_status entry_find(entry **out, struct dt_cpu_products *products,
                            const dt_cpu_product *key, dt_error *err)
{
    dt_status st = DT_OK;
    entry *entries;

    *out = NULL;
    for (int i = 0; i < products->count; i++) {
        if (same(&products->entries[i].key, key)) {
            *out = &products->entries[i];
            return DT_OK;
        }
    }
    entries = dt_array_try_room(products->entries, products->count + 1, &products->capacity,
                                sizeof *entries);
    if (entries == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a matrix product");
    products->entries = entries;
    DT_TRY(entry_make(&products->entries[products->count], products, key, err));
    *out = &products->entries[products->count++];
out:
    return st;
}

static dt_status entry_run(struct dt_cpu_products *products, const entry *e, void *c, const void *a,
                           const void *b, const void *bias, dt_error *err)
{
    dt_status st = DT_OK;
    dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, e->a},
                               {DNNL_ARG_WEIGHTS, e->b},
                               {DNNL_ARG_DST, e->c},
                               {DNNL_ARG_BIAS, e->bias}};

    /* oneDNN takes non-const pointers even to operands that it only reads */
    DT_TRY(dnnl_check(dnnl_memory_set_data_handle(e->a, (void *)(uintptr_t)a), "operand", err));
    DT_TRY(dnnl_check(dnnl_memory_set_data_handle(e->b, (void *)(uintptr_t)b), "operand", err));
    DT_TRY(dnnl_check(dnnl_memory_set_data_handle(e->c, c), "operand", err));
    if (e->bias != NULL)
        DT_TRY(dnnl_check(dnnl_memory_set_data_handle(e->bias, (void *)(uintptr_t)bias), "operand",
                          err));
    DT_TRY(dnnl_check(
        dnnl_primitive_execute(e->primitive, products->stream, e->bias != NULL ? 4 : 3, args),
        "execution", err));
    DT_TRY(dnnl_check(dnnl_stream_wait(products->stream), "execution", err));
out:
    return st;
}

/* Returns whether to use the BLAS interface: for dx = dy w and dw += dy^T x in fp32. Measured
 * against the primitive (AVX-512, 2 threads): 1.0 to 1.3 times as fast for both at the sizes of a
 * GPT-2, 1.7 times for dx of the head. With 768 rows of width 128, dx is equal (0.95 to 1.08 times)
 * and dw 1.06 to 1.2 times as fast. For y = x w^T both are equal, and the primitive also adds the
 * bias. */
static bool is_plain_gemm(const dt_cpu_product *x)
{
    return x->type == DT_F32 && x->c_type == DT_F32 && !x->b_transposed && !x->bias;
}

static dt_status gemm_run(const dt_cpu_product *x, float *c, const float *a, const float *b,
                          dt_error *err)
{
    return dnnl_check(dnnl_sgemm(x->a_transposed ? 'T' : 'N', 'N', x->m, x->n, x->k, 1.0f, a,
                                 x->a_transposed ? x->m : x->k, b, x->n,
                                 x->accumulate ? 1.0f : 0.0f, c, x->n),
                      "sgemm", err);
}

dt_status dt_cpu_product_run(dt_device *device, const dt_cpu_product *product, void *c,
                             const void *a, const void *b, const void *bias, bool *done,
                             dt_error *err)
{
    dt_status st = DT_OK;
    struct dt_cpu_products *products = ((dt_cpu_state *)device->state)->products;
    entry *e;

    dt_progress_made();
    *done = is_plain_gemm(product);
    /* oneDNN uses the thread count of the calling thread, both when it creates and when it runs a
     * primitive */
    omp_set_num_threads(device->threads);
    if (*done)
        return gemm_run(product, c, a, b, err);
    DT_TRY(entry_find(&e, products, product, err));
    if (e->lacking)
        goto out;
    DT_TRY(entry_run(products, e, c, a, b, bias, err));
    *done = true;
out:
    return st;
}
