/* collective: predicts the time of one NCCL collective.
 *
 * Formula    time = latency + bytes / bandwidth, the least over rings and trees and over NCCL's
 *            three protocols: NCCL's own model of itself, by which it chooses among them
 *            (src/graph/tuning.cc of NVIDIA/nccl, whose latencies are in collective.c).
 *            Rings: W-1 steps of a gather or a reduce-scatter, 2 (W-1) of an all-reduce, of which
 *            nodes-1, or twice that, go over the network; each rank moves (W-1)/W of the bytes, or
 *            twice that, or for a broadcast all of them, at the bus bandwidth. Trees, for all-reduce: 2 (G-1) steps in a node of G
 *            GPUs and 2 log2(nodes) over the network; twice the bytes at 0.9 of the bus bandwidth
 * Left out   NVLink SHARP, PAT, and corrections of trees by size: newer ones are faster, the
 *            corrections (0.5 to 1) make trees slower between 4 KB and 64 MB
 * Units      GB/s are 1e9 bytes a second
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
