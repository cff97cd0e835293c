/* cudnn_plan: builds and runs a cuDNN kernel for causal attention of one shape.
 *
 * Choice     the first engine in the order of cuDNN's heuristic (mode A: a table of its version by GPU and shape,
 *            without timing) that does not report non-deterministic results, builds, and needs at most the given
 *            workspace
 * Cost       building compiles a kernel: some tenths of a second
 * Errors     as in cudnn.h; DT_ERR_UNSUPPORTED if no engine is left
 */
#ifndef DT_ENGINE_OPS_CUDA_CUDNN_PLAN_H
#define DT_ENGINE_OPS_CUDA_CUDNN_PLAN_H

#include "engine/ops/cuda/cudnn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

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
