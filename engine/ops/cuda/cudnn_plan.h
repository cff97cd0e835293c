/* cudnn_plan: a kernel of cuDNN's for causal attention of one shape, and running it.
 *
 * Choice     the first engine that cuDNN's own reckoning offers (heuristic mode A: a table of its
 *            version for a card and shape, nothing is timed), that is not known to give other bits
 *            from run to run, builds, and needs no more workspace than is given
 * Cost       building compiles a kernel: some tenths of a second
 * Errors     of cudnn.h; DT_ERR_UNSUPPORTED where no engine is left
 */
#ifndef DT_ENGINE_OPS_CUDA_CUDNN_PLAN_H
#define DT_ENGINE_OPS_CUDA_CUDNN_PLAN_H

#include "engine/ops/cuda/cudnn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CUDNN_CONFIGS 8 /* engines that are looked at */

typedef struct dt_cudnn_plan {
    dt_cudnn *cudnn;
    dt_cudnn_graph graph;
    void *heuristics, *config[DT_CUDNN_CONFIGS], *plan;
    size_t workspace_bytes;
    float scale, infinity; /* what the graph takes by value */
    dt_cudnn_shape shape;
} dt_cudnn_plan;

/* `cudnn` is connected. After a failure as well, dt_cudnn_plan_close. */
dt_status dt_cudnn_plan_open(dt_cudnn_plan *out, dt_cudnn *cudnn, const dt_cudnn_shape *shape,
                             size_t workspace_most, dt_error *err);
void dt_cudnn_plan_close(dt_cudnn_plan *plan);

/* Queued on the stream of the handle. out (B,T,C), lse (B,H,T), qkv (B,T,3C), each at a multiple of
 * 16 bytes; workspace: of workspace_bytes, or NULL where that is 0 */
dt_status dt_cudnn_plan_run(dt_cudnn_plan *plan, void *out, float *lse, const void *qkv,
                            void *workspace, dt_error *err);

/* The best engines for a graph in config[], *count of them. card: a descriptor that stands for a
 * card, or NULL for that of the handle. The caller destroys *heuristics and config[], set or NULL,
 * after a failure as well. */
dt_status dt_cudnn_engines(void **heuristics, void *config[DT_CUDNN_CONFIGS], int *count,
                           dt_cudnn_graph *graph, void *card, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
