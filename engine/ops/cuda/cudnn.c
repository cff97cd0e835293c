/* cudnn: implements cudnn.h. */
#include "engine/ops/cuda/cudnn.h"

#include <math.h>
#include <string.h>

#include "base/library.h"

/* --- the library */

#define WORDS_MAX 512

/* Converts the status of a call to an error with the library's own message. */
static dt_status cudnn_check(const dt_cudnn *cudnn, int status, const char *what, dt_error *err)
{
    char words[WORDS_MAX] = "";

    if (status == 0)
        return DT_OK;
    if (cudnn->last_words != NULL) /* exists since 9.0; has text only for some errors */
        cudnn->last_words(words, sizeof(words));
    words[sizeof(words) - 1] = '\0';
    words[strcspn(words, "\n")] = '\0';
    return DT_FAIL(err, status / 1000 == 3 ? DT_ERR_UNSUPPORTED : DT_ERR_CUDA, "cudnn: %s: %s%s%s",
                   what, cudnn->status_text(status), words[0] != '\0' ? ": " : "", words);
}

static dt_status find(void *function, const dt_cudnn *cudnn, const char *name, dt_error *err)
{
    return dt_library_find(function, cudnn->library, name, err);
}

dt_status dt_cudnn_open(dt_cudnn *out, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_library_open(&out->library, DT_CUDNN_LIBRARY, "DTRUN_CUDNN", err));
    DT_TRY(find(&out->version, out, "cudnnGetVersion", err));
    if (out->version() < DT_CUDNN_OLDEST)
        DT_THROW(err, DT_ERR_UNSUPPORTED, DT_CUDNN_LIBRARY " is version %zu; expected %d or later",
                 out->version(), DT_CUDNN_OLDEST);
    DT_TRY(find(&out->status_text, out, "cudnnGetErrorString", err));
    DT_TRY(find(&out->last_words, out, "cudnnGetLastErrorString", err));
    DT_TRY(find(&out->handle_create, out, "cudnnCreate", err));
    DT_TRY(find(&out->handle_destroy, out, "cudnnDestroy", err));
    DT_TRY(find(&out->stream_set, out, "cudnnSetStream", err));
    DT_TRY(find(&out->create, out, "cudnnBackendCreateDescriptor", err));
    DT_TRY(find(&out->destroy, out, "cudnnBackendDestroyDescriptor", err));
    DT_TRY(find(&out->set, out, "cudnnBackendSetAttribute", err));
    DT_TRY(find(&out->get, out, "cudnnBackendGetAttribute", err));
    DT_TRY(find(&out->finalize, out, "cudnnBackendFinalize", err));
    DT_TRY(find(&out->execute, out, "cudnnBackendExecute", err));
out:
    return st;
}

static void disconnect(dt_cudnn *cudnn)
{
    if (cudnn->handle != NULL)
        (void)cudnn->handle_destroy(cudnn->handle);
    cudnn->handle = NULL;
}

dt_status dt_cudnn_connect(dt_cudnn *cudnn, void *stream, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(cudnn_check(cudnn, cudnn->handle_create(&cudnn->handle), "a handle", err));
    DT_TRY(cudnn_check(cudnn, cudnn->stream_set(cudnn->handle, stream), "the stream", err));
out:
    if (st != DT_OK)
        disconnect(cudnn); /* so that a handle without its stream is never used */
    return st;
}

void dt_cudnn_close(dt_cudnn *cudnn)
{
    disconnect(cudnn);
    memset(cudnn, 0, sizeof(*cudnn));
}

/* --- the graph of causal attention */

#define ALIGNMENT 16 /* bytes; of every tensor that the caller passes */
#define NONE      (-1)

enum layout { ROWS, COLUMNS, OF_QKV, OF_QKV_TRANSPOSED, OF_OUT, ONE };

/* --- descriptors */

static dt_status make(void **out, dt_cudnn_graph *g, int kind, const char *what, dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(g->made_count < DT_CUDNN_DESCRIPTORS);
    *out = NULL;
    DT_TRY(cudnn_check(g->cudnn, g->cudnn->create(kind, out), what, err));
    g->made[g->made_count++] = *out;
out:
    return st;
}

static dt_status set(dt_cudnn_graph *g, void *descriptor, int name, int type, int64_t count,
                     const void *values, dt_error *err)
{
    return cudnn_check(g->cudnn, g->cudnn->set(descriptor, name, type, count, values),
                       "an attribute", err);
}

static dt_status finalize(dt_cudnn_graph *g, void *descriptor, const char *what, dt_error *err)
{
    return cudnn_check(g->cudnn, g->cudnn->finalize(descriptor), what, err);
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

/* --- the kernel of one shape */

static void destroy(dt_cudnn *cudnn, void **descriptor)
{
    if (*descriptor != NULL)
        (void)cudnn->destroy(*descriptor);
    *descriptor = NULL;
}

/* --- engines */

dt_status dt_cudnn_engines(void **heuristics, void *config[DT_CUDNN_CONFIGS], int *count,
                           dt_cudnn_graph *graph, void *card, dt_error *err)
{
    dt_cudnn *cudnn = graph->cudnn;
    int mode = DT_CUDNN_HEURISTICS_BEST_GUESS;
    int64_t found = 0;
    dt_status st = DT_OK;

    *count = 0;
    *heuristics = NULL;
    memset(config, 0, DT_CUDNN_CONFIGS * sizeof(*config));
    DT_TRY(cudnn_check(cudnn, cudnn->create(DT_CUDNN_HEURISTICS, heuristics), "engines", err));
    DT_TRY(cudnn_check(cudnn,
                       cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_GRAPH, DT_CUDNN_OF_DESCRIPTOR, 1,
                                  &graph->graph),
                       "engines", err));
    DT_TRY(cudnn_check(
        cudnn,
        cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_MODE, DT_CUDNN_OF_HEURISTICS_MODE, 1, &mode),
        "engines", err));
    if (card != NULL)
        DT_TRY(cudnn_check(
            cudnn,
            cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_CARD, DT_CUDNN_OF_DESCRIPTOR, 1, &card),
            "engines", err));
    DT_TRY(cudnn_check(cudnn, cudnn->finalize(*heuristics), "engines", err));
    for (int i = 0; i < DT_CUDNN_CONFIGS; i++)
        DT_TRY(cudnn_check(cudnn, cudnn->create(DT_CUDNN_CONFIG, &config[i]), "engines", err));
    DT_TRY(cudnn_check(cudnn,
                       cudnn->get(*heuristics, DT_CUDNN_HEURISTICS_RESULTS, DT_CUDNN_OF_DESCRIPTOR,
                                  DT_CUDNN_CONFIGS, &found, config),
                       "engines", err));
    *count = (int)(found < DT_CUDNN_CONFIGS ? found : DT_CUDNN_CONFIGS);
out:
    return st;
}

/* Sets *out to whether the engine reports that its results change from run to run. Not all such
 * engines report it. */
static dt_status wavers(bool *out, dt_cudnn *cudnn, void *config, dt_error *err)
{
    int note[DT_CUDNN_NOTES_MOST];
    int64_t one = 1, count = 0;
    void *engine = NULL;
    dt_status st = DT_OK;

    *out = false;
    DT_TRY(cudnn_check(cudnn, cudnn->create(DT_CUDNN_ENGINE, &engine), "an engine", err));
    DT_TRY(cudnn_check(
        cudnn, cudnn->get(config, DT_CUDNN_CONFIG_ENGINE, DT_CUDNN_OF_DESCRIPTOR, 1, &one, &engine),
        "an engine", err));
    DT_TRY(cudnn_check(cudnn,
                       cudnn->get(engine, DT_CUDNN_ENGINE_NOTES, DT_CUDNN_OF_NOTE,
                                  DT_CUDNN_NOTES_MOST, &count, note),
                       "an engine's notes", err));
    for (int64_t i = 0; i < count && i < DT_CUDNN_NOTES_MOST; i++)
        *out = *out || note[i] == DT_CUDNN_NOTE_NOT_DETERMINISTIC;
out:
    destroy(cudnn, &engine);
    return st;
}

/* --- plans */

static dt_status build(dt_cudnn_plan *plan, void *config, size_t workspace_most, dt_error *err)
{
    dt_cudnn *cudnn = plan->cudnn;
    int64_t count = 0, bytes = 0;
    dt_status st = DT_OK;
    bool other_bits;

    DT_TRY(wavers(&other_bits, cudnn, config, err));
    if (other_bits)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cudnn: its engine is not deterministic");
    DT_TRY(cudnn_check(cudnn, cudnn->create(DT_CUDNN_PLAN, &plan->plan), "a plan", err));
    DT_TRY(cudnn_check(
        cudnn, cudnn->set(plan->plan, DT_CUDNN_PLAN_HANDLE, DT_CUDNN_OF_HANDLE, 1, &cudnn->handle),
        "a plan", err));
    DT_TRY(cudnn_check(
        cudnn, cudnn->set(plan->plan, DT_CUDNN_PLAN_CONFIG, DT_CUDNN_OF_DESCRIPTOR, 1, &config),
        "a plan", err));
    DT_TRY(cudnn_check(cudnn, cudnn->finalize(plan->plan), "a plan", err));
    DT_TRY(cudnn_check(
        cudnn,
        cudnn->get(plan->plan, DT_CUDNN_PLAN_WORKSPACE_BYTES, DT_CUDNN_OF_INT64, 1, &count, &bytes),
        "a plan's workspace", err));
    if (bytes < 0 || (uint64_t)bytes > workspace_most)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cudnn: its engine needs %lld bytes of workspace",
                 (long long)bytes);
    plan->workspace_bytes = (size_t)bytes;
out:
    if (st != DT_OK)
        destroy(cudnn, &plan->plan);
    return st;
}

dt_status dt_cudnn_plan_open(dt_cudnn_plan *out, dt_cudnn *cudnn, const dt_cudnn_shape *shape,
                             size_t workspace_most, dt_error *err)
{
    dt_status st = DT_OK;
    int count = 0;

    memset(out, 0, sizeof(*out));
    out->cudnn = cudnn;
    out->shape = *shape;
    out->scale = (float)(1.0 / sqrt((double)shape->d));
    out->infinity = -INFINITY;
    DT_TRY(dt_cudnn_graph_attention(&out->graph, cudnn, shape, err));
    DT_TRY(dt_cudnn_engines(&out->heuristics, out->config, &count, &out->graph, NULL, err));
    if (count == 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cudnn: no engine for this shape on this GPU");
    for (int i = 0; i < count && out->plan == NULL; i++)
        st = build(out, out->config[i], workspace_most, err);
    if (out->plan != NULL)
        dt_error_clear(err); /* the error of an engine that was not available */
out:
    return out->plan != NULL ? DT_OK : st;
}

void dt_cudnn_plan_close(dt_cudnn_plan *plan)
{
    if (plan->cudnn == NULL)
        return;
    destroy(plan->cudnn, &plan->plan);
    for (int i = 0; i < DT_CUDNN_CONFIGS; i++)
        destroy(plan->cudnn, &plan->config[i]);
    destroy(plan->cudnn, &plan->heuristics);
    dt_cudnn_graph_release(&plan->graph);
    memset(plan, 0, sizeof(*plan));
}

/* --- running a plan */

dt_status dt_cudnn_plan_run(dt_cudnn_plan *plan, void *out, float *lse, const void *qkv,
                            void *workspace, dt_error *err)
{
    static const int64_t id[] = {DT_CUDNN_ID_Q,       DT_CUDNN_ID_K,   DT_CUDNN_ID_V,
                                 DT_CUDNN_ID_OUT,     DT_CUDNN_ID_LSE, DT_CUDNN_ID_SCALE,
                                 DT_CUDNN_ID_INFINITY};
    size_t third = (size_t)(plan->shape.heads * plan->shape.d) * dt_dtype_bytes(plan->shape.dtype);
    char *q = (char *)(uintptr_t)qkv; /* the library takes only non-const pointers */
    void *pointer[] = {q, q + third, q + 2 * third, out, lse, &plan->scale, &plan->infinity};
    dt_cudnn *cudnn = plan->cudnn;
    dt_status st = DT_OK;
    void *pack = NULL;

    DT_TRY(cudnn_check(cudnn, cudnn->create(DT_CUDNN_PACK, &pack), "operands", err));
    DT_TRY(cudnn_check(cudnn, cudnn->set(pack, DT_CUDNN_PACK_IDS, DT_CUDNN_OF_INT64, 7, id),
                       "operands", err));
    DT_TRY(cudnn_check(cudnn,
                       cudnn->set(pack, DT_CUDNN_PACK_POINTERS, DT_CUDNN_OF_POINTER, 7, pointer),
                       "operands", err));
    DT_TRY(cudnn_check(
        cudnn, cudnn->set(pack, DT_CUDNN_PACK_WORKSPACE, DT_CUDNN_OF_POINTER, 1, &workspace),
        "operands", err));
    DT_TRY(cudnn_check(cudnn, cudnn->finalize(pack), "operands", err));
    DT_TRY(cudnn_check(cudnn, cudnn->execute(cudnn->handle, plan->plan, pack), "attention", err));
out:
    destroy(cudnn, &pack);
    return st;
}
