#include <stdlib.h>

#include "engine/device/graph_cuda.cuh"

struct dt_graph {
    cudaGraphExec_t exec;
    int64_t scratch_moves; /* scratch_moves of the device at the time of recording */
};

static dt_status begin(dt_device *device, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(
        cudaStreamBeginCapture(dt_cuda_of(device)->stream, cudaStreamCaptureModeThreadLocal),
        "recording ops", err));
    dt_cuda_of(device)->recording = true;
out:
    if (st != DT_OK)
        (void)cudaGetLastError(); /* clears the error for the next launch */
    return st;
}

static void free_graph(dt_device *device, dt_graph *graph)
{
    if (graph == NULL)
        return;
    (void)cudaSetDevice(dt_cuda_of(device)->index);
    if (graph->exec != NULL)
        (void)cudaGraphExecDestroy(graph->exec); /* a running graph finishes first */
    free(graph);
}

static dt_status make(dt_device *device, dt_graph **out, cudaGraph_t recorded, dt_error *err)
{
    dt_graph *made = (dt_graph *)calloc(1, sizeof(*made));
    dt_status st = DT_OK;

    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a graph");
    made->scratch_moves = dt_cuda_of(device)->scratch_moves;
    DT_TRY(dt_cuda_check(cudaGraphInstantiateWithFlags(&made->exec, recorded, 0),
                         "making a graph of recorded ops", err));
    /* Upload now: otherwise a lack of memory at the first launch would end the run. */
    DT_TRY(dt_cuda_check(cudaGraphUpload(made->exec, dt_cuda_of(device)->stream),
                         "making a graph of recorded ops", err));
    *out = made;
    made = NULL;
out:
    free_graph(device, made);
    return st;
}

static dt_status end(dt_device *device, dt_graph **out, int64_t *nodes, dt_error *err)
{
    cudaGraph_t recorded = NULL;
    size_t count = 0;
    dt_status st = DT_OK;

    dt_cuda_of(device)->recording = false;
    *out = NULL;
    *nodes = 0;
    DT_TRY(dt_cuda_check(cudaStreamEndCapture(dt_cuda_of(device)->stream, &recorded),
                         "recording ops", err));
    DT_TRY(dt_cuda_check(cudaGraphGetNodes(recorded, NULL, &count), "recording ops", err));
    if (count > 0)
        DT_TRY(make(device, out, recorded, err));
    *nodes = (int64_t)count;
out:
    (void)cudaGetLastError(); /* clears the error of a failed recording for the next launch */
    if (recorded != NULL)
        (void)cudaGraphDestroy(recorded);
    return st;
}

static dt_status launch(dt_device *device, dt_graph *graph, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_enter(device, err));
    DT_TRY(dt_cuda_check(cudaGraphLaunch(graph->exec, dt_cuda_of(device)->stream),
                         "launching a graph", err));
out:
    return st;
}

static bool valid(dt_device *device, const dt_graph *graph)
{
    return graph->scratch_moves == dt_cuda_of(device)->scratch_moves;
}

const dt_graphs dt_cuda_graphs = {
    .begin = begin, .end = end, .launch = launch, .valid = valid, .free = free_graph};
