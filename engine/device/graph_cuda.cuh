/* graph_cuda: implements graph.h by stream capture. */
#ifndef DT_ENGINE_DEVICE_GRAPH_CUDA_CUH
#define DT_ENGINE_DEVICE_GRAPH_CUDA_CUH

#include "engine/device/graph.h"
#include "engine/device/queue_cuda.cuh"

extern const dt_graphs dt_cuda_graphs;

#endif
