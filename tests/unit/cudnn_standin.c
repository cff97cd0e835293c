#include "tests/unit/cudnn_standin.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/cuda/cudnn.h"

#define EXPORT __attribute__((visibility("default")))

#define ATTRIBUTES 16
#define IDS        64
#define BAD        2000 /* CUDNN_STATUS_BAD_PARAM */
#define REFUSED    3000 /* CUDNN_STATUS_NOT_SUPPORTED */
#define BROKEN     4000 /* CUDNN_STATUS_INTERNAL_ERROR */

typedef struct attribute {
    int name, type;
    int64_t count;
    void *values;
} attribute;

typedef struct descriptor {
    int kind, count, engine; /* engine: number of the engine of a configuration, from 0 */
    bool final;
    attribute attribute[ATTRIBUTES];
    struct descriptor *graph; /* of a configuration */
} descriptor;

typedef struct handle {
    void *stream;
} handle;

EXPORT cudnn_standin dt_cudnn_standin = {.version = 92600, .engines = 2, .out_factor = 1.0f};

static bool fails(void)
{
    return ++dt_cudnn_standin.calls == dt_cudnn_standin.fail_at;
}

static void note(const char *word)
{
    size_t used = strlen(dt_cudnn_standin.log);

    snprintf(dt_cudnn_standin.log + used, sizeof(dt_cudnn_standin.log) - used, "%s%s",
             used > 0 ? " " : "", word);
}

/* --- attributes */

static size_t bytes_of(int type)
{
    switch (type) {
    case DT_CUDNN_OF_BOOL:
    case DT_CUDNN_OF_CHAR:
        return 1;
    case DT_CUDNN_OF_INT64:
    case DT_CUDNN_OF_POINTER:
    case DT_CUDNN_OF_DESCRIPTOR:
    case DT_CUDNN_OF_HANDLE:
        return 8;
    default:
        return sizeof(int);
    }
}

static const attribute *find(const descriptor *d, int name)
{
    for (int i = 0; i < d->count; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

static int number(const descriptor *d, int name)
{
    const attribute *a = find(d, name);

    return a != NULL ? *(const int *)a->values : -1;
}

static int64_t number64(const descriptor *d, int name)
{
    return *(const int64_t *)find(d, name)->values;
}

static descriptor *other(const descriptor *d, int name)
{
    const attribute *a = find(d, name);

    return a != NULL ? *(descriptor *const *)a->values : NULL;
}

static bool flag(const descriptor *d, int name)
{
    const attribute *a = find(d, name);

    return a != NULL && *(const bool *)a->values;
}

/* --- running a graph: all tensors as floats */

typedef struct job {
    descriptor *graph;
    int64_t id[IDS];
    void *at[IDS];
    float value[IDS]; /* of tensors that are passed by value */
    int ids;
    float *whole[IDS]; /* by id */
} job;

static int64_t elems_of(const int64_t *dim)
{
    return dim[0] * dim[1] * dim[2] * dim[3];
}

static const int64_t *dim_of(const descriptor *t)
{
    return find(t, DT_CUDNN_TENSOR_DIMENSIONS)->values;
}

static float rounded(float x, int type)
{
    uint32_t bits;

    if (type == DT_CUDNN_HALF)
        return (float)(_Float16)x;
    if (type != DT_CUDNN_BFLOAT16)
        return x;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof(bits));
    return x;
}

static float load(const void *at, int64_t i, int type)
{
    _Float16 half;
    uint32_t bits;
    float x;

    if (type == DT_CUDNN_FLOAT)
        return ((const float *)at)[i];
    if (type == DT_CUDNN_HALF) {
        memcpy(&half, (const char *)at + 2 * i, 2);
        return (float)half;
    }
    bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void store(void *at, int64_t i, int type, float x)
{
    _Float16 half = (_Float16)x;
    uint32_t bits;

    x = rounded(x, type);
    memcpy(&bits, &x, sizeof(bits));
    if (type == DT_CUDNN_FLOAT)
        ((float *)at)[i] = x;
    else if (type == DT_CUDNN_HALF)
        memcpy((char *)at + 2 * i, &half, 2);
    else
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
}

/* Returns the place of element i of a tensor of `dim` under `stride`. Where a dimension is 1,
 * any index of the other tensor `of` is mapped to it. */
static int64_t place(int64_t i, const int64_t *of, const int64_t *dim, const int64_t *stride)
{
    int64_t at = 0;

    for (int axis = 3; axis >= 0; axis--) {
        at += (dim[axis] == 1 ? 0 : i % of[axis]) * stride[axis];
        i /= of[axis];
    }
    return at;
}

static int64_t packed(int64_t i, const int64_t *of, const int64_t *dim)
{
    int64_t stride[4] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1};

    return place(i, of, dim, stride);
}

static float *whole(job *j, const descriptor *t)
{
    int64_t id = number64(t, DT_CUDNN_TENSOR_ID);
    const int64_t *dim = dim_of(t), *stride = find(t, DT_CUDNN_TENSOR_STRIDES)->values;
    int64_t elems = elems_of(dim);

    if (j->whole[id] != NULL)
        return j->whole[id];
    j->whole[id] = calloc((size_t)elems, sizeof(float));
    for (int k = 0; k < j->ids; k++)
        if (j->id[k] == id && flag(t, DT_CUDNN_TENSOR_BY_VALUE))
            j->whole[id][0] = j->value[k];
        else if (j->id[k] == id)
            for (int64_t i = 0; i < elems; i++)
                j->whole[id][i] =
                    load(j->at[k], place(i, dim, dim, stride), number(t, DT_CUDNN_TENSOR_TYPE));
    return j->whole[id];
}

/* Writes the output of an operation: rounds it to its type, and stores it if the caller passed memory for it. */
static void put_back(job *j, const descriptor *t)
{
    int64_t id = number64(t, DT_CUDNN_TENSOR_ID);
    const int64_t *dim = dim_of(t), *stride = find(t, DT_CUDNN_TENSOR_STRIDES)->values;
    int type = number(t, DT_CUDNN_TENSOR_TYPE);
    float *x = whole(j, t), factor;

    for (int64_t i = 0; i < elems_of(dim); i++)
        x[i] = rounded(x[i], type);
    for (int k = 0; k < j->ids; k++)
        if (j->id[k] == id)
            for (int64_t i = 0; i < elems_of(dim); i++) {
                factor = 1.0f;
                if (id == DT_CUDNN_ID_OUT && i / dim[3] % dim[2] >= dt_cudnn_standin.out_from)
                    factor = dt_cudnn_standin.out_factor;
                store(j->at[k], place(i, dim, dim, stride), type, factor * x[i]);
            }
}

static void run_matmul(job *j, const descriptor *operation)
{
    const descriptor *ta = other(operation, DT_CUDNN_DO_MATMUL_A);
    const descriptor *tb = other(operation, DT_CUDNN_DO_MATMUL_B);
    const descriptor *tc = other(operation, DT_CUDNN_DO_MATMUL_C);
    const int64_t *da = dim_of(ta), *dc = dim_of(tc);
    int64_t m = dc[2], n = dc[3], inner = da[3];
    float *a = whole(j, ta), *b = whole(j, tb), *c = whole(j, tc);

    for (int64_t i = 0; i < elems_of(dc); i++) {
        int64_t batch = i / (m * n), row = i / n % m, col = i % n;
        float sum = 0;

        for (int64_t k = 0; k < inner; k++)
            sum += a[(batch * m + row) * inner + k] * b[(batch * inner + k) * n + col];
        c[i] = sum;
    }
    put_back(j, tc);
}

static float apply(int mode, float x, float b, float t, int64_t index)
{
    switch (mode) {
    case DT_CUDNN_ADD:
        return x + b;
    case DT_CUDNN_MUL:
        return x * b;
    case DT_CUDNN_DIV:
        return x / b;
    case DT_CUDNN_SUB:
        return x - b;
    case DT_CUDNN_EXP:
        return expf(x);
    case DT_CUDNN_LOG:
        return logf(x);
    case DT_CUDNN_GREATER_EQUAL:
        return x >= b;
    case DT_CUDNN_INDEX:
        return (float)index;
    default:
        return t != 0 ? x : b;
    }
}

static void run_pointwise(job *j, const descriptor *operation)
{
    const descriptor *how = other(operation, DT_CUDNN_DO_POINTWISE_OPERATOR);
    const descriptor *tx = other(operation, DT_CUDNN_DO_POINTWISE_X);
    const descriptor *tb = other(operation, DT_CUDNN_DO_POINTWISE_B);
    const descriptor *tt = other(operation, DT_CUDNN_DO_POINTWISE_T);
    const descriptor *ty = other(operation, DT_CUDNN_DO_POINTWISE_Y);
    const attribute *axis = find(how, DT_CUDNN_POINTWISE_AXIS);
    const int64_t *dim = dim_of(ty);
    float *x = whole(j, tx), *b = tb != NULL ? whole(j, tb) : NULL;
    float *t = tt != NULL ? whole(j, tt) : NULL, *y = whole(j, ty);

    for (int64_t i = 0; i < elems_of(dim); i++) {
        int64_t index[4] = {i / (dim[1] * dim[2] * dim[3]), i / (dim[2] * dim[3]) % dim[1],
                            i / dim[3] % dim[2], i % dim[3]};

        y[i] = apply(number(how, DT_CUDNN_POINTWISE_MODE), x[packed(i, dim, dim_of(tx))],
                     b != NULL ? b[packed(i, dim, dim_of(tb))] : 0,
                     t != NULL ? t[packed(i, dim, dim_of(tt))] : 0,
                     axis != NULL ? index[*(const int64_t *)axis->values] : 0);
    }
    put_back(j, ty);
}

static void run_reduction(job *j, const descriptor *operation)
{
    int kind = number(other(operation, DT_CUDNN_DO_REDUCTION_OPERATOR), DT_CUDNN_REDUCTION_KIND);
    const descriptor *tx = other(operation, DT_CUDNN_DO_REDUCTION_X);
    const descriptor *ty = other(operation, DT_CUDNN_DO_REDUCTION_Y);
    float *x = whole(j, tx), *y = whole(j, ty);

    for (int64_t i = 0; i < elems_of(dim_of(ty)); i++)
        y[i] = kind == DT_CUDNN_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < elems_of(dim_of(tx)); i++) {
        float *to = &y[packed(i, dim_of(tx), dim_of(ty))];

        *to = kind == DT_CUDNN_MAX ? fmaxf(*to, x[i]) : *to + x[i];
    }
    put_back(j, ty);
}

static void run(void *what)
{
    job *j = what;
    const attribute *operations = find(j->graph, DT_CUDNN_GRAPH_OPERATIONS);

    for (int64_t i = 0; i < operations->count; i++) {
        const descriptor *operation = ((descriptor *const *)operations->values)[i];

        if (operation->kind == DT_CUDNN_DO_MATMUL)
            run_matmul(j, operation);
        else if (operation->kind == DT_CUDNN_DO_POINTWISE)
            run_pointwise(j, operation);
        else
            run_reduction(j, operation);
    }
    dt_cudnn_standin.out_factor += dt_cudnn_standin.out_drift;
    for (int i = 0; i < IDS; i++)
        free(j->whole[i]);
    free(j);
}

/* --- completeness */

static bool has(const descriptor *d, const int *names, int count)
{
    for (int i = 0; i < count; i++)
        if (find(d, names[i]) == NULL)
            return false;
    return true;
}

#define HAS(d, ...) \
    has((d), (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static int finalize_pointwise(const descriptor *d)
{
    static const struct {
        int mode;
        const char *word;
    } words[] = {{DT_CUDNN_ADD, "add"},
                 {DT_CUDNN_MUL, "mul"},
                 {DT_CUDNN_DIV, "div"},
                 {DT_CUDNN_SUB, "sub"},
                 {DT_CUDNN_EXP, "exp"},
                 {DT_CUDNN_LOG, "log"},
                 {DT_CUDNN_GREATER_EQUAL, "greater_equal"},
                 {DT_CUDNN_INDEX, "index"},
                 {DT_CUDNN_SELECT, "select"}};

    if (!HAS(d, DT_CUDNN_DO_POINTWISE_OPERATOR, DT_CUDNN_DO_POINTWISE_X, DT_CUDNN_DO_POINTWISE_Y))
        return BAD;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (number(other(d, DT_CUDNN_DO_POINTWISE_OPERATOR), DT_CUDNN_POINTWISE_MODE) ==
            words[i].mode)
            note(words[i].word);
    return 0;
}

static int finalize_reduction(const descriptor *d)
{
    if (!HAS(d, DT_CUDNN_DO_REDUCTION_OPERATOR, DT_CUDNN_DO_REDUCTION_X, DT_CUDNN_DO_REDUCTION_Y))
        return BAD;
    note(number(other(d, DT_CUDNN_DO_REDUCTION_OPERATOR), DT_CUDNN_REDUCTION_KIND) == DT_CUDNN_MAX
             ? "max"
             : "sum");
    return 0;
}

static int finalize(const descriptor *d)
{
    switch (d->kind) {
    case DT_CUDNN_TENSOR:
        return HAS(d, DT_CUDNN_TENSOR_TYPE, DT_CUDNN_TENSOR_DIMENSIONS, DT_CUDNN_TENSOR_STRIDES,
                   DT_CUDNN_TENSOR_ID, DT_CUDNN_TENSOR_ALIGNMENT)
                   ? 0
                   : BAD;
    case DT_CUDNN_DO_POINTWISE:
        return finalize_pointwise(d);
    case DT_CUDNN_DO_REDUCTION:
        return finalize_reduction(d);
    case DT_CUDNN_DO_MATMUL:
        note("matmul");
        return HAS(d, DT_CUDNN_DO_MATMUL_A, DT_CUDNN_DO_MATMUL_B, DT_CUDNN_DO_MATMUL_C,
                   DT_CUDNN_DO_MATMUL_OPERATOR)
                   ? 0
                   : BAD;
    case DT_CUDNN_GRAPH:
        note("graph");
        return HAS(d, DT_CUDNN_GRAPH_OPERATIONS) ? 0 : BAD;
    case DT_CUDNN_HEURISTICS:
        return HAS(d, DT_CUDNN_HEURISTICS_GRAPH, DT_CUDNN_HEURISTICS_MODE) ? 0 : BAD;
    case DT_CUDNN_PLAN:
        if (!HAS(d, DT_CUDNN_PLAN_HANDLE, DT_CUDNN_PLAN_CONFIG))
            return BAD;
        return other(d, DT_CUDNN_PLAN_CONFIG)->engine < dt_cudnn_standin.unbuildable ? REFUSED : 0;
    default:
        return 0;
    }
}

/* --- entry points, as cudnn_graph.h declares them */

EXPORT size_t cudnnGetVersion(void);
EXPORT const char *cudnnGetErrorString(int status);
EXPORT void cudnnGetLastErrorString(char *out, size_t bytes);
EXPORT int cudnnCreate(void **out);
EXPORT int cudnnDestroy(void *at);
EXPORT int cudnnSetStream(void *at, void *stream);
EXPORT int cudnnBackendCreateDescriptor(int kind, void **out);
EXPORT int cudnnBackendDestroyDescriptor(void *at);
EXPORT int cudnnBackendSetAttribute(void *at, int name, int type, int64_t count,
                                    const void *values);
EXPORT int cudnnBackendGetAttribute(void *at, int name, int type, int64_t room, int64_t *count,
                                    void *values);
EXPORT int cudnnBackendFinalize(void *at);
EXPORT int cudnnBackendExecute(void *at, void *plan, void *pack);

size_t cudnnGetVersion(void)
{
    return dt_cudnn_standin.version;
}

const char *cudnnGetErrorString(int status)
{
    return status == REFUSED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OF_STANDIN";
}

void cudnnGetLastErrorString(char *out, size_t bytes)
{
    snprintf(out, bytes, "call %d\nand more", dt_cudnn_standin.calls);
}

int cudnnCreate(void **out)
{
    if (fails())
        return BROKEN;
    *out = calloc(1, sizeof(handle));
    dt_cudnn_standin.living++;
    dt_cudnn_standin.handles++;
    return 0;
}

int cudnnDestroy(void *at)
{
    free(at);
    dt_cudnn_standin.living--;
    return 0;
}

int cudnnSetStream(void *at, void *stream)
{
    ((handle *)at)->stream = stream;
    return fails() ? BROKEN : 0;
}

int cudnnBackendCreateDescriptor(int kind, void **out)
{
    descriptor *d;

    if (fails())
        return BROKEN;
    d = calloc(1, sizeof(*d));
    d->kind = kind;
    *out = d;
    dt_cudnn_standin.living++;
    return 0;
}

int cudnnBackendDestroyDescriptor(void *at)
{
    descriptor *d = at;

    for (int i = 0; i < d->count; i++)
        free(d->attribute[i].values);
    free(d);
    dt_cudnn_standin.living--;
    return 0;
}

int cudnnBackendSetAttribute(void *at, int name, int type, int64_t count, const void *values)
{
    size_t bytes = (size_t)count * bytes_of(type);
    descriptor *d = at;

    if (fails())
        return BROKEN;
    if (d->final || d->count == ATTRIBUTES || find(d, name) != NULL)
        return BAD;
    d->attribute[d->count] = (attribute){name, type, count, calloc(1, bytes)};
    memcpy(d->attribute[d->count++].values, values, bytes);
    if (type == DT_CUDNN_OF_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            if (((descriptor *const *)values)[i]->kind != DT_CUDNN_CONFIG &&
                !((descriptor *const *)values)[i]->final)
                return BAD; /* only finished descriptors are passed on */
    return 0;
}

int cudnnBackendGetAttribute(void *at, int name, int type, int64_t room, int64_t *count,
                             void *values)
{
    static const int sure = 0, wavering = DT_CUDNN_NOTE_NOT_DETERMINISTIC;
    descriptor *d = at;

    if (fails())
        return BROKEN;
    *count = 1;
    if (name == DT_CUDNN_HEURISTICS_RESULTS) {
        *count = dt_cudnn_standin.engines < room ? dt_cudnn_standin.engines : room;
        for (int i = 0; i < *count; i++) {
            ((descriptor **)values)[i]->engine = i;
            ((descriptor **)values)[i]->graph = other(d, DT_CUDNN_HEURISTICS_GRAPH);
        }
    } else if (name == DT_CUDNN_CONFIG_ENGINE) {
        (*(descriptor **)values)->engine = d->engine;
    } else if (name == DT_CUDNN_ENGINE_NOTES) {
        memcpy(values, d->engine < dt_cudnn_standin.wavering ? &wavering : &sure, sizeof(int));
    } else if (name == DT_CUDNN_PLAN_WORKSPACE_BYTES && type == DT_CUDNN_OF_INT64) {
        *(int64_t *)values =
            other(d, DT_CUDNN_PLAN_CONFIG)->engine == 0 ? dt_cudnn_standin.workspace_bytes : 0;
    } else {
        return BAD;
    }
    return 0;
}

int cudnnBackendFinalize(void *at)
{
    descriptor *d = at;
    int status;

    if (fails())
        return BROKEN;
    status = d->final ? BAD : finalize(d);
    d->final = status == 0;
    return status;
}

int cudnnBackendExecute(void *at, void *plan, void *pack)
{
    const attribute *ids = find(pack, DT_CUDNN_PACK_IDS);
    const attribute *pointers = find(pack, DT_CUDNN_PACK_POINTERS);
    job *j;

    if (fails())
        return BROKEN;
    if (!((descriptor *)plan)->final || !((descriptor *)pack)->final || ids == NULL ||
        pointers == NULL || ids->count != pointers->count)
        return BAD;
    j = calloc(1, sizeof(*j));
    j->graph = other(plan, DT_CUDNN_PLAN_CONFIG)->graph;
    j->ids = (int)ids->count;
    for (int i = 0; i < j->ids; i++) {
        j->id[i] = ((const int64_t *)ids->values)[i];
        j->at[i] = ((void *const *)pointers->values)[i];
        if (j->id[i] == DT_CUDNN_ID_SCALE ||
            j->id[i] == DT_CUDNN_ID_INFINITY) /* read now, as cuDNN does */
            j->value[i] = *(const float *)j->at[i];
    }
    dt_cudnn_standin.runs++;
    if (dt_cudnn_standin.queue != NULL)
        dt_cudnn_standin.queue(((handle *)at)->stream, run, j);
    else
        run(j);
    return 0;
}
