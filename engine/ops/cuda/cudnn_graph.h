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
#ifndef DT_ENGINE_OPS_CUDA_CUDNN_GRAPH_H
#define DT_ENGINE_OPS_CUDA_CUDNN_GRAPH_H

#include "engine/ops/cuda/cudnn.h"
#include "engine/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
