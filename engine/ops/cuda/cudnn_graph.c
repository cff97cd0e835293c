#include "engine/ops/cuda/cudnn_graph.h"

#include <string.h>

#define ALIGNMENT 16 /* bytes; of every tensor that the caller passes */
#define NONE      (-1)

enum layout { ROWS, COLUMNS, OF_QKV, OF_QKV_TRANSPOSED, OF_OUT, ONE };

/* --- descriptors */

static dt_status make(void **out, dt_cudnn_graph *g, int kind, const char *what, dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(g->made_count < DT_CUDNN_DESCRIPTORS);
    *out = NULL;
    DT_TRY(dt_cudnn_check(g->cudnn, g->cudnn->create(kind, out), what, err));
    g->made[g->made_count++] = *out;
out:
    return st;
}

static dt_status set(dt_cudnn_graph *g, void *descriptor, int name, int type, int64_t count,
                     const void *values, dt_error *err)
{
    return dt_cudnn_check(g->cudnn, g->cudnn->set(descriptor, name, type, count, values),
                          "an attribute", err);
}

static dt_status finalize(dt_cudnn_graph *g, void *descriptor, const char *what, dt_error *err)
{
    return dt_cudnn_check(g->cudnn, g->cudnn->finalize(descriptor), what, err);
}

static dt_status set_descriptor(dt_cudnn_graph *g, void *descriptor, int name, void *value,
                                dt_error *err)
{
    return set(g, descriptor, name, DT_CUDNN_OF_DESCRIPTOR, 1, &value, err);
}

/* --- tensors */

static void lay_out(int64_t dim[4], int64_t stride[4], const dt_cudnn_shape *s, enum layout layout)
{
    int64_t b = s->batch, h = s->heads, t = s->t, d = s->d, c = h * d;

    switch (layout) {
    case ROWS: /* (B,H,T,T): a score for each query and key */
        memcpy(dim, (int64_t[4]){b, h, t, t}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){h * t * t, t * t, t, 1}, 4 * sizeof(*stride));
        break;
    case COLUMNS: /* (B,H,T,1): one number for each query */
        memcpy(dim, (int64_t[4]){b, h, t, 1}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){h * t, t, 1, 1}, 4 * sizeof(*stride));
        break;
    case OF_QKV:
        memcpy(dim, (int64_t[4]){b, h, t, d}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){t * 3 * c, d, 3 * c, 1}, 4 * sizeof(*stride));
        break;
    case OF_QKV_TRANSPOSED:
        memcpy(dim, (int64_t[4]){b, h, d, t}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){t * 3 * c, d, 1, 3 * c}, 4 * sizeof(*stride));
        break;
    case OF_OUT:
        memcpy(dim, (int64_t[4]){b, h, t, d}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){t * c, d, c, 1}, 4 * sizeof(*stride));
        break;
    case ONE:
        memcpy(dim, (int64_t[4]){1, 1, 1, 1}, 4 * sizeof(*dim));
        memcpy(stride, (int64_t[4]){1, 1, 1, 1}, 4 * sizeof(*stride));
        break;
    }
}

/* Creates a tensor. id: its number in the pack if the caller passes it; DT_CUDNN_ID_OWN for an
 * intermediate value that is never stored. */
static dt_status tensor(void **out, dt_cudnn_graph *g, int64_t id, int type, enum layout layout,
                        dt_error *err)
{
    int64_t dim[4], stride[4], alignment = ALIGNMENT;
    bool yes = true, own = id == DT_CUDNN_ID_OWN;
    dt_status st = DT_OK;

    if (own)
        id = g->next_id++;
    lay_out(dim, stride, &g->shape, layout);
    DT_TRY(make(out, g, DT_CUDNN_TENSOR, "a tensor", err));
    DT_TRY(set(g, *out, DT_CUDNN_TENSOR_TYPE, DT_CUDNN_OF_TYPE, 1, &type, err));
    DT_TRY(set(g, *out, DT_CUDNN_TENSOR_DIMENSIONS, DT_CUDNN_OF_INT64, 4, dim, err));
    DT_TRY(set(g, *out, DT_CUDNN_TENSOR_STRIDES, DT_CUDNN_OF_INT64, 4, stride, err));
    DT_TRY(set(g, *out, DT_CUDNN_TENSOR_ID, DT_CUDNN_OF_INT64, 1, &id, err));
    DT_TRY(set(g, *out, DT_CUDNN_TENSOR_ALIGNMENT, DT_CUDNN_OF_INT64, 1, &alignment, err));
    if (own)
        DT_TRY(set(g, *out, DT_CUDNN_TENSOR_VIRTUAL, DT_CUDNN_OF_BOOL, 1, &yes, err));
    if (layout == ONE)
        DT_TRY(set(g, *out, DT_CUDNN_TENSOR_BY_VALUE, DT_CUDNN_OF_BOOL, 1, &yes, err));
    DT_TRY(finalize(g, *out, "a tensor", err));
out:
    return st;
}

/* --- operations */

static void add(dt_cudnn_graph *g, void *operation)
{
    DT_ASSERT(g->operation_count < DT_CUDNN_OPERATIONS);
    g->operation[g->operation_count++] = operation;
}

static dt_status matmul(dt_cudnn_graph *g, void *c, void *a, void *b, dt_error *err)
{
    int precision = DT_CUDNN_FLOAT;
    void *how, *operation;
    dt_status st = DT_OK;

    DT_TRY(make(&how, g, DT_CUDNN_MATMUL, "a product", err));
    DT_TRY(set(g, how, DT_CUDNN_MATMUL_PRECISION, DT_CUDNN_OF_TYPE, 1, &precision, err));
    DT_TRY(finalize(g, how, "a product", err));
    DT_TRY(make(&operation, g, DT_CUDNN_DO_MATMUL, "a product", err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_MATMUL_A, a, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_MATMUL_B, b, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_MATMUL_C, c, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_MATMUL_OPERATOR, how, err));
    DT_TRY(finalize(g, operation, "a product", err));
    add(g, operation);
out:
    return st;
}

/* y = mode(x) or mode(x, b); DT_CUDNN_SELECT: y = t ? x : b. axis: for DT_CUDNN_INDEX, else
 * NONE. */
static dt_status pointwise(dt_cudnn_graph *g, int mode, int64_t axis, void *y, void *x, void *b,
                           void *t, dt_error *err)
{
    int precision = mode == DT_CUDNN_GREATER_EQUAL ? DT_CUDNN_BOOLEAN : DT_CUDNN_FLOAT;
    void *how, *operation;
    dt_status st = DT_OK;

    DT_TRY(make(&how, g, DT_CUDNN_POINTWISE, "an operation", err));
    DT_TRY(set(g, how, DT_CUDNN_POINTWISE_MODE, DT_CUDNN_OF_POINTWISE_MODE, 1, &mode, err));
    DT_TRY(set(g, how, DT_CUDNN_POINTWISE_PRECISION, DT_CUDNN_OF_TYPE, 1, &precision, err));
    if (axis != NONE)
        DT_TRY(set(g, how, DT_CUDNN_POINTWISE_AXIS, DT_CUDNN_OF_INT64, 1, &axis, err));
    DT_TRY(finalize(g, how, "an operation", err));
    DT_TRY(make(&operation, g, DT_CUDNN_DO_POINTWISE, "an operation", err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_POINTWISE_OPERATOR, how, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_POINTWISE_X, x, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_POINTWISE_Y, y, err));
    if (b != NULL)
        DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_POINTWISE_B, b, err));
    if (t != NULL)
        DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_POINTWISE_T, t, err));
    DT_TRY(finalize(g, operation, "an operation", err));
    add(g, operation);
out:
    return st;
}

static dt_status reduction(dt_cudnn_graph *g, int kind, void *y, void *x, dt_error *err)
{
    int precision = DT_CUDNN_FLOAT;
    void *how, *operation;
    dt_status st = DT_OK;

    DT_TRY(make(&how, g, DT_CUDNN_REDUCTION, "a reduction", err));
    DT_TRY(set(g, how, DT_CUDNN_REDUCTION_PRECISION, DT_CUDNN_OF_TYPE, 1, &precision, err));
    DT_TRY(set(g, how, DT_CUDNN_REDUCTION_KIND, DT_CUDNN_OF_REDUCTION_KIND, 1, &kind, err));
    DT_TRY(finalize(g, how, "a reduction", err));
    DT_TRY(make(&operation, g, DT_CUDNN_DO_REDUCTION, "a reduction", err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_REDUCTION_OPERATOR, how, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_REDUCTION_X, x, err));
    DT_TRY(set_descriptor(g, operation, DT_CUDNN_DO_REDUCTION_Y, y, err));
    DT_TRY(finalize(g, operation, "a reduction", err));
    add(g, operation);
out:
    return st;
}

/* --- the graph */

/* *out = scale * q k^T if the query may see the key, else minus infinity. */
static dt_status scores(void **out, dt_cudnn_graph *g, int type, dt_error *err)
{
    void *q, *k, *scale, *infinity, *product, *scaled, *query, *key, *seen;
    dt_status st = DT_OK;

    DT_TRY(tensor(&q, g, DT_CUDNN_ID_Q, type, OF_QKV, err));
    DT_TRY(tensor(&k, g, DT_CUDNN_ID_K, type, OF_QKV_TRANSPOSED, err));
    DT_TRY(tensor(&scale, g, DT_CUDNN_ID_SCALE, DT_CUDNN_FLOAT, ONE, err));
    DT_TRY(tensor(&infinity, g, DT_CUDNN_ID_INFINITY, DT_CUDNN_FLOAT, ONE, err));
    DT_TRY(tensor(&product, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, ROWS, err));
    DT_TRY(tensor(&scaled, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, ROWS, err));
    DT_TRY(tensor(&query, g, DT_CUDNN_ID_OWN, DT_CUDNN_INT32, ROWS, err));
    DT_TRY(tensor(&key, g, DT_CUDNN_ID_OWN, DT_CUDNN_INT32, ROWS, err));
    DT_TRY(tensor(&seen, g, DT_CUDNN_ID_OWN, DT_CUDNN_BOOLEAN, ROWS, err));
    DT_TRY(tensor(out, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, ROWS, err));
    DT_TRY(matmul(g, product, q, k, err));
    DT_TRY(pointwise(g, DT_CUDNN_MUL, NONE, scaled, product, scale, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_INDEX, 2, query, scaled, NULL, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_INDEX, 3, key, scaled, NULL, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_GREATER_EQUAL, NONE, seen, query, key, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_SELECT, NONE, *out, scaled, infinity, seen, err));
out:
    return st;
}

/* *out = the probabilities of `scores`; writes lse to the caller's tensor. */
static dt_status softmax(void **out, dt_cudnn_graph *g, int type, void *scores, dt_error *err)
{
    void *most, *lower, *e, *sum, *log, *lse;
    dt_status st = DT_OK;

    DT_TRY(tensor(&most, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, COLUMNS, err));
    DT_TRY(tensor(&lower, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, ROWS, err));
    DT_TRY(tensor(&e, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, ROWS, err));
    DT_TRY(tensor(&sum, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, COLUMNS, err));
    DT_TRY(tensor(&log, g, DT_CUDNN_ID_OWN, DT_CUDNN_FLOAT, COLUMNS, err));
    DT_TRY(tensor(&lse, g, DT_CUDNN_ID_LSE, DT_CUDNN_FLOAT, COLUMNS, err));
    DT_TRY(tensor(out, g, DT_CUDNN_ID_OWN, type, ROWS, err));
    DT_TRY(reduction(g, DT_CUDNN_MAX, most, scores, err));
    DT_TRY(pointwise(g, DT_CUDNN_SUB, NONE, lower, scores, most, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_EXP, NONE, e, lower, NULL, NULL, err));
    DT_TRY(reduction(g, DT_CUDNN_SUM, sum, e, err));
    DT_TRY(pointwise(g, DT_CUDNN_LOG, NONE, log, sum, NULL, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_ADD, NONE, lse, most, log, NULL, err));
    DT_TRY(pointwise(g, DT_CUDNN_DIV, NONE, *out, e, sum, NULL, err));
out:
    return st;
}

dt_status dt_cudnn_graph_attention(dt_cudnn_graph *out, dt_cudnn *cudnn,
                                   const dt_cudnn_shape *shape, dt_error *err)
{
    int type = shape->dtype == DT_BF16 ? DT_CUDNN_BFLOAT16 : DT_CUDNN_HALF;
    void *masked, *probabilities, *v, *result;
    dt_status st = DT_OK;

    DT_ASSERT(shape->dtype == DT_BF16 || shape->dtype == DT_F16);
    memset(out, 0, sizeof(*out));
    out->cudnn = cudnn;
    out->shape = *shape;
    out->next_id = DT_CUDNN_ID_OWN;
    DT_TRY(scores(&masked, out, type, err));
    DT_TRY(softmax(&probabilities, out, type, masked, err));
    DT_TRY(tensor(&v, out, DT_CUDNN_ID_V, type, OF_QKV, err));
    DT_TRY(tensor(&result, out, DT_CUDNN_ID_OUT, type, OF_OUT, err));
    DT_TRY(matmul(out, result, probabilities, v, err));
    DT_TRY(make(&out->graph, out, DT_CUDNN_GRAPH, "the graph", err));
    if (cudnn->handle != NULL)
        DT_TRY(set(out, out->graph, DT_CUDNN_GRAPH_HANDLE, DT_CUDNN_OF_HANDLE, 1, &cudnn->handle,
                   err));
    DT_TRY(set(out, out->graph, DT_CUDNN_GRAPH_OPERATIONS, DT_CUDNN_OF_DESCRIPTOR,
               out->operation_count, out->operation, err));
    DT_TRY(finalize(out, out->graph, "the graph", err));
out:
    return st;
}

void dt_cudnn_graph_release(dt_cudnn_graph *graph)
{
    while (graph->made_count > 0)
        (void)graph->cudnn->destroy(graph->made[--graph->made_count]);
    graph->graph = NULL;
    graph->operation_count = 0;
}
