/* collective: predicts the time of one NCCL collective.
 *
 * Formula    time = latency + bytes / bandwidth, for the fastest of rings and trees and of NCCL's
 *            three protocols. This is the model by which NCCL itself chooses among them
 *            (src/graph/tuning.cc of NVIDIA/nccl; its latencies are in collective.c).
 *            Rings: W-1 steps for a gather or a reduce-scatter, 2 (W-1) for an all-reduce; nodes-1
 *            of them, or twice that, go over the network. Each rank moves (W-1)/W of the bytes, or
 *            twice that, or for a broadcast all of them, at the bus bandwidth.
 *            Trees, for all-reduce only: 2 (G-1) steps in a node of G GPUs, and 2 log2(nodes) over
 *            the network; twice the bytes at 0.9 of the bus bandwidth
 * Left out   NVLink SHARP and PAT, which newer versions use and which are faster; NCCL's
 *            corrections of trees by size (0.5 to 1), which make trees slower between 4 KB and 64 MB
 * Units      GB/s are 1e9 bytes per second
 */
#ifndef DT_RUNNER_PREDICT_COLLECTIVE_H
#define DT_RUNNER_PREDICT_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/cost/traffic.h"

typedef struct dt_fabric {
    int64_t nodes, node_gpus;
    bool nvlink;
    double node_gbs;    /* bus bandwidth within a node */
    double network_gbs; /* of all network cards of a node together */
} dt_fabric;

/* Returns the predicted seconds; 0 for one GPU. */
double dt_collective_seconds(const dt_fabric *fabric, dt_traffic_kind kind, int64_t bytes);
/* Returns the bus bandwidth of the slowest link. */
double dt_fabric_bus_gbs(const dt_fabric *fabric);

#endif
