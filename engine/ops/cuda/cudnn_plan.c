#include "engine/ops/cuda/cudnn_plan.h"

#include <math.h>
#include <string.h>

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
    DT_TRY(dt_cudnn_check(cudnn, cudnn->create(DT_CUDNN_HEURISTICS, heuristics), "engines", err));
    DT_TRY(dt_cudnn_check(cudnn,
                          cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_GRAPH, DT_CUDNN_OF_DESCRIPTOR,
                                     1, &graph->graph),
                          "engines", err));
    DT_TRY(dt_cudnn_check(
        cudnn,
        cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_MODE, DT_CUDNN_OF_HEURISTICS_MODE, 1, &mode),
        "engines", err));
    if (card != NULL)
        DT_TRY(dt_cudnn_check(
            cudnn,
            cudnn->set(*heuristics, DT_CUDNN_HEURISTICS_CARD, DT_CUDNN_OF_DESCRIPTOR, 1, &card),
            "engines", err));
    DT_TRY(dt_cudnn_check(cudnn, cudnn->finalize(*heuristics), "engines", err));
    for (int i = 0; i < DT_CUDNN_CONFIGS; i++)
        DT_TRY(dt_cudnn_check(cudnn, cudnn->create(DT_CUDNN_CONFIG, &config[i]), "engines", err));
    DT_TRY(dt_cudnn_check(cudnn,
                          cudnn->get(*heuristics, DT_CUDNN_HEURISTICS_RESULTS,
                                     DT_CUDNN_OF_DESCRIPTOR, DT_CUDNN_CONFIGS, &found, config),
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
    DT_TRY(dt_cudnn_check(cudnn, cudnn->create(DT_CUDNN_ENGINE, &engine), "an engine", err));
    DT_TRY(dt_cudnn_check(
        cudnn, cudnn->get(config, DT_CUDNN_CONFIG_ENGINE, DT_CUDNN_OF_DESCRIPTOR, 1, &one, &engine),
        "an engine", err));
    DT_TRY(dt_cudnn_check(cudnn,
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
    DT_TRY(dt_cudnn_check(cudnn, cudnn->create(DT_CUDNN_PLAN, &plan->plan), "a plan", err));
    DT_TRY(dt_cudnn_check(
        cudnn, cudnn->set(plan->plan, DT_CUDNN_PLAN_HANDLE, DT_CUDNN_OF_HANDLE, 1, &cudnn->handle),
        "a plan", err));
    DT_TRY(dt_cudnn_check(
        cudnn, cudnn->set(plan->plan, DT_CUDNN_PLAN_CONFIG, DT_CUDNN_OF_DESCRIPTOR, 1, &config),
        "a plan", err));
    DT_TRY(dt_cudnn_check(cudnn, cudnn->finalize(plan->plan), "a plan", err));
    DT_TRY(dt_cudnn_check(
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

    DT_TRY(dt_cudnn_check(cudnn, cudnn->create(DT_CUDNN_PACK, &pack), "operands", err));
    DT_TRY(dt_cudnn_check(cudnn, cudnn->set(pack, DT_CUDNN_PACK_IDS, DT_CUDNN_OF_INT64, 7, id),
                          "operands", err));
    DT_TRY(dt_cudnn_check(cudnn,
                          cudnn->set(pack, DT_CUDNN_PACK_POINTERS, DT_CUDNN_OF_POINTER, 7, pointer),
                          "operands", err));
    DT_TRY(dt_cudnn_check(
        cudnn, cudnn->set(pack, DT_CUDNN_PACK_WORKSPACE, DT_CUDNN_OF_POINTER, 1, &workspace),
        "operands", err));
    DT_TRY(dt_cudnn_check(cudnn, cudnn->finalize(pack), "operands", err));
    DT_TRY(
        dt_cudnn_check(cudnn, cudnn->execute(cudnn->handle, plan->plan, pack), "attention", err));
out:
    destroy(cudnn, &pack);
    return st;
}
