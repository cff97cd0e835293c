/* cudnn: attention by NVIDIA's cuDNN 9: the library, loaded at run time if it is installed; the graph that
 * describes causal attention to it; and the kernel built from that for one shape.
 *
 * Purpose    cuDNN's attention is an alternative to the built-in one (tuned.h). Nothing is linked
 *            and no header of cuDNN is needed: one build works with any version, or without the library. The
 *            names and values below are those of cuDNN 9's cudnn.h; they are part of its binary
 *            interface, and unit.ops_cudnn_true compares each with the header if it is installed
 * Descriptors are created, given attributes, finalized, and passed to each other
 *            (docs.nvidia.com/deeplearning/cudnn, "Backend API")
 * Ownership  dt_cudnn_close() does not unload the library, which leaves state in the driver
 * Threads    one at a time; uses the current GPU of the calling thread
 * Errors     DT_ERR_UNSUPPORTED: not found, too old, or not for this GPU; DT_ERR_CUDA: a call failed. None of
 *            them needs to end a run
 */
#ifndef DT_ENGINE_OPS_CUDA_CUDNN_H
#define DT_ENGINE_OPS_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CUDNN_LIBRARY "libcudnn.so.9"
#define DT_CUDNN_OLDEST  91900 /* 9.19.0; the graph was tested only with it and with 9.26 */

enum { /* cudnnBackendDescriptorType_t */
       DT_CUDNN_POINTWISE = 0,
       DT_CUDNN_ENGINE = 2,
       DT_CUDNN_CONFIG = 3,
       DT_CUDNN_HEURISTICS = 4,
       DT_CUDNN_PLAN = 5,
       DT_CUDNN_DO_POINTWISE = 13,
       DT_CUDNN_GRAPH = 15,
       DT_CUDNN_PACK = 16,
       DT_CUDNN_TENSOR = 17,
       DT_CUDNN_MATMUL = 18,
       DT_CUDNN_DO_MATMUL = 19,
       DT_CUDNN_REDUCTION = 21,
       DT_CUDNN_DO_REDUCTION = 22,
       DT_CUDNN_CARD = 38 /* only for tests, which create one to run without a GPU */
};

enum { /* cudnnBackendAttributeName_t */
       DT_CUDNN_POINTWISE_MODE = 0,
       DT_CUDNN_POINTWISE_PRECISION = 1,
       DT_CUDNN_POINTWISE_AXIS = 9,
       DT_CUDNN_HEURISTICS_MODE = 200,
       DT_CUDNN_HEURISTICS_GRAPH = 201,
       DT_CUDNN_HEURISTICS_RESULTS = 202,
       DT_CUDNN_HEURISTICS_CARD = 204,
       DT_CUDNN_CONFIG_ENGINE = 300,
       DT_CUDNN_PLAN_HANDLE = 400,
       DT_CUDNN_PLAN_CONFIG = 401,
       DT_CUDNN_PLAN_WORKSPACE_BYTES = 402,
       DT_CUDNN_DO_POINTWISE_OPERATOR = 750,
       DT_CUDNN_DO_POINTWISE_X = 751,
       DT_CUDNN_DO_POINTWISE_B = 752,
       DT_CUDNN_DO_POINTWISE_Y = 753,
       DT_CUDNN_DO_POINTWISE_T = 758,
       DT_CUDNN_GRAPH_HANDLE = 800,
       DT_CUDNN_GRAPH_OPERATIONS = 801,
       DT_CUDNN_TENSOR_ALIGNMENT = 900,
       DT_CUDNN_TENSOR_TYPE = 901,
       DT_CUDNN_TENSOR_DIMENSIONS = 902,
       DT_CUDNN_TENSOR_STRIDES = 903,
       DT_CUDNN_TENSOR_ID = 906,
       DT_CUDNN_TENSOR_VIRTUAL = 907,
       DT_CUDNN_TENSOR_BY_VALUE = 908,
       DT_CUDNN_PACK_IDS = 1000,
       DT_CUDNN_PACK_POINTERS = 1001,
       DT_CUDNN_PACK_WORKSPACE = 1003,
       DT_CUDNN_ENGINE_NOTES = 1303,
       DT_CUDNN_MATMUL_PRECISION = 1500,
       DT_CUDNN_DO_MATMUL_A = 1520,
       DT_CUDNN_DO_MATMUL_B = 1521,
       DT_CUDNN_DO_MATMUL_C = 1522,
       DT_CUDNN_DO_MATMUL_OPERATOR = 1523,
       DT_CUDNN_REDUCTION_KIND = 1600,
       DT_CUDNN_REDUCTION_PRECISION = 1601,
       DT_CUDNN_DO_REDUCTION_X = 1610,
       DT_CUDNN_DO_REDUCTION_Y = 1611,
       DT_CUDNN_DO_REDUCTION_OPERATOR = 1612,
       DT_CUDNN_CARD_JSON = 2702
};

enum { /* cudnnBackendAttributeType_t */
       DT_CUDNN_OF_HANDLE = 0,
       DT_CUDNN_OF_TYPE = 1,
       DT_CUDNN_OF_BOOL = 2,
       DT_CUDNN_OF_INT64 = 3,
       DT_CUDNN_OF_POINTER = 6,
       DT_CUDNN_OF_HEURISTICS_MODE = 8,
       DT_CUDNN_OF_NOTE = 11,
       DT_CUDNN_OF_POINTWISE_MODE = 14,
       DT_CUDNN_OF_DESCRIPTOR = 15,
       DT_CUDNN_OF_REDUCTION_KIND = 18,
       DT_CUDNN_OF_CHAR = 24
};

enum { /* cudnnDataType_t */
       DT_CUDNN_FLOAT = 0,
       DT_CUDNN_HALF = 2,
       DT_CUDNN_INT32 = 4,
       DT_CUDNN_BFLOAT16 = 9,
       DT_CUDNN_BOOLEAN = 11
};

enum { /* cudnnPointwiseMode_t */
       DT_CUDNN_ADD = 0,
       DT_CUDNN_MUL = 1,
       DT_CUDNN_DIV = 6,
       DT_CUDNN_SUB = 9,
       DT_CUDNN_EXP = 13,
       DT_CUDNN_LOG = 15,
       DT_CUDNN_GREATER_EQUAL = 303,
       DT_CUDNN_INDEX = 501,
       DT_CUDNN_SELECT = 601
};

enum { /* cudnnReduceTensorOp_t, cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t */
       DT_CUDNN_SUM = 0,
       DT_CUDNN_MAX = 3,
       DT_CUDNN_HEURISTICS_BEST_GUESS = 3,
       DT_CUDNN_NOTE_NOT_DETERMINISTIC = 4,
       DT_CUDNN_NOTES_MOST = 16
};

/* These functions return a cudnnStatus_t: 0 is success. */
typedef struct dt_cudnn {
    void *library;
    void *handle; /* set by dt_cudnn_connect */
    size_t (*version)(void);
    const char *(*status_text)(int status);
    void (*last_words)(char *out, size_t bytes);
    int (*handle_create)(void **handle);
    int (*handle_destroy)(void *handle);
    int (*stream_set)(void *handle, void *stream);
    int (*create)(int kind, void **out);
    int (*destroy)(void *descriptor);
    int (*set)(void *descriptor, int name, int type, int64_t count, const void *values);
    int (*get)(void *descriptor, int name, int type, int64_t room, int64_t *count, void *values);
    int (*finalize)(void *descriptor);
    int (*execute)(void *handle, void *plan, void *pack);
} dt_cudnn;

/* Loads the library. Call dt_cudnn_close after a failure, too. */
dt_status dt_cudnn_open(dt_cudnn *out, dt_error *err);
/* Creates a handle for the current GPU and this stream (a cudaStream_t). */
dt_status dt_cudnn_connect(dt_cudnn *cudnn, void *stream, dt_error *err);
void dt_cudnn_close(dt_cudnn *cudnn);

/* cudnn_graph: describes causal attention to cuDNN as a graph of operations.
 *
 * cuDNN's single attention operation does not support a causal mask. The graph therefore consists of the
 * operations that cuDNN's own front end uses (NVIDIA/cudnn-frontend 1.32, sdpa with a right bound of the
 * diagonal and statistics); the library recognises them as attention and runs them as one kernel:
 *
 *   S = q k^T                              masked = query >= key ? scale * S : -inf
 *   most = max over keys of masked         e = exp(masked - most)     sum = sum over keys of e
 *   out = (e / sum) v                      lse = most + log(sum)
 *
 * Shapes     q,k,v (B,H,T,D), views of qkv (B,T,3C); out (B,H,T,D), a view of (B,T,C); lse (B,H,T,1): as in
 *            ops.h, so that the built-in backward pass can use them
 * Types      q, k, v, out and the probabilities BF16 or F16, all else fp32
 * Backward   is not described. Without a workspace of 2*B*H*T*T bytes, cuDNN sums dq in an order that
 *            changes from run to run, and no numerical note of its engines says so. One engine of 9.25, for
 *            Hopper, can keep the order, but only with undocumented knobs
 */

#define DT_CUDNN_DESCRIPTORS 48 /* 19 tensors, 14 operations with a descriptor each, the graph */
#define DT_CUDNN_OPERATIONS  14

enum { /* tensors that the caller passes, by their number in the pack; the graph owns the others */
       DT_CUDNN_ID_Q = 1,
       DT_CUDNN_ID_K,
       DT_CUDNN_ID_V,
       DT_CUDNN_ID_OUT,
       DT_CUDNN_ID_LSE,
       DT_CUDNN_ID_SCALE,    /* one float in host memory */
       DT_CUDNN_ID_INFINITY, /* one float in host memory: minus infinity */
       DT_CUDNN_ID_OWN
};

typedef struct dt_cudnn_shape {
    int64_t batch, t, heads, d;
    dt_dtype dtype;
} dt_cudnn_shape;

typedef struct dt_cudnn_graph {
    dt_cudnn *cudnn;
    dt_cudnn_shape shape;
    void *graph; /* the finished graph, for dt_cudnn_engines */
    void *made[DT_CUDNN_DESCRIPTORS], *operation[DT_CUDNN_OPERATIONS];
    int made_count, operation_count;
    int64_t next_id;
} dt_cudnn_graph;

/* Builds the graph, with the handle of `cudnn` if it has one. Call dt_cudnn_graph_release after a
 * failure, too. */
dt_status dt_cudnn_graph_attention(dt_cudnn_graph *out, dt_cudnn *cudnn,
                                   const dt_cudnn_shape *shape, dt_error *err);
void dt_cudnn_graph_release(dt_cudnn_graph *graph);

/* cudnn_plan: builds and runs a cuDNN kernel for causal attention of one shape.
 *
 * Choice     the first engine in the order of cuDNN's heuristic (mode A: a table of its version by GPU and shape,
 *            without timing) that does not report non-deterministic results, builds, and needs at most the given
 *            workspace
 * Cost       building compiles a kernel: some tenths of a second
 * Errors     as above; DT_ERR_UNSUPPORTED if no engine is left
 */

#define DT_CUDNN_CONFIGS 8 /* largest number of engines that are tried */

typedef struct dt_cudnn_plan {
    dt_cudnn *cudnn;
    dt_cudnn_graph graph;
    void *heuristics, *config[DT_CUDNN_CONFIGS], *plan;
    size_t workspace_bytes;
    float scale, infinity; /* scalars that the graph takes by value */
    dt_cudnn_shape shape;
} dt_cudnn_plan;

/* Builds a plan. `cudnn` must be connected. Call dt_cudnn_plan_close after a failure, too. */
dt_status dt_cudnn_plan_open(dt_cudnn_plan *out, dt_cudnn *cudnn, const dt_cudnn_shape *shape,
                             size_t workspace_most, dt_error *err);
void dt_cudnn_plan_close(dt_cudnn_plan *plan);

/* Queues the kernel on the stream of the handle. out (B,T,C), lse (B,H,T), qkv (B,T,3C), each
 * aligned to 16 bytes; workspace: workspace_bytes bytes, or NULL if that is 0. */
dt_status dt_cudnn_plan_run(dt_cudnn_plan *plan, void *out, float *lse, const void *qkv,
                            void *workspace, dt_error *err);

/* Gives the best engines for a graph in config[], and their number in *count. card: a descriptor of
 * a GPU, or NULL for the GPU of the handle. The caller destroys *heuristics and config[], which may
 * be NULL, also after a failure. */
dt_status dt_cudnn_engines(void **heuristics, void *config[DT_CUDNN_CONFIGS], int *count,
                           dt_cudnn_graph *graph, void *card, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
