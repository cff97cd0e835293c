/* predict: predicts the time of a recipe's step on a number of GPUs, from rates of GPUs and networks and
 * the time of NCCL's collectives. Arithmetic alone, no devices.
 *
 * Compute    FLOPs of each stage (recipes/cost/traffic.h): FLOPs per token of the architecture
 *            (recipes/architecture/) times rows = sequences x tokens. Includes the forward passes
 *            that activation checkpointing repeats, for all blocks but the last. Divided by the
 *            GPU's matrix rate times `efficiency`, which also accounts for all operations that are
 *            not matrix products
 * Update     bytes of memory traffic per element of a rank's share: 12 for the gradient (zeroed,
 *            read for the norm and by the optimizer), 8 for the master weight and for each moment
 *            (read and written), 2 for the copy in the compute type (written). Divided by the
 *            memory bandwidth times DT_PLAN_MEMORY_SHARE. For an optimizer that works on whole
 *            matrices, also the FLOPs of the rank with most of them (recipes/cost/matrices.h), at the
 *            matrix rate of their type times `efficiency`
 * Overlap    one channel sends the messages in the order in which they are launched, as in
 *            engine/strategy/strategy_int.h, and another one those among replicas; a stage waits for the
 *            messages that it needs
 * Left out   the compute that collectives take from the GPU while they run, the host, stragglers,
 *            sums of a few numbers, evaluation and checkpoints: a real run is slower
 */
#ifndef DT_RUNNER_PREDICT_PREDICT_H
#define DT_RUNNER_PREDICT_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/cost/memory.h"
#include "recipes/cost/traffic.h"

/* gpu_specs: lists the rates of GPUs and networks on which predictions are based.
 *
 * Sources    NVIDIA's data sheets of H100 and H200 (SXM), A100 (SXM), L40S, and the Ada GPU
 *            architecture paper (RTX 4090, fp32 sums); matrix rates without sparsity
 * Links      bus bandwidth that NCCL reaches for large gathers among the GPUs of a node, as its
 *            developers and users report it (sources in predict.c). An all-reduce with NVLink
 *            SHARP reaches more (480 GB/s on 8 H100); this is left out, so that predictions are not
 *            too optimistic
 */

typedef struct dt_gpu_spec {
    const char *name;                  /* the value of --card */
    double half_tflops, single_tflops; /* bf16 and fp16 with fp32 sums; fp32 without tensor cores */
    double memory_gb, memory_gbs;      /* 1e9 bytes, and 1e9 bytes per second */
    bool nvlink;
    double node_gbs; /* NCCL's bus bandwidth within a node */
    const char *node_source;
} dt_gpu_spec;

extern const dt_gpu_spec dt_gpu_specs[];
/* Names, for --card; ends with NULL, in the order of the table. */
extern const char *const dt_gpu_spec_names[];

/* A network between nodes. */
typedef struct dt_network {
    const char *name;
    double nic_gbs; /* what one network card delivers */
    bool per_gpu;   /* each GPU has a network card; else each node has one */
    const char *source;
} dt_network;

extern const dt_network dt_networks[];
extern const char *const dt_network_names[];

/* collective: predicts the time of one NCCL collective.
 *
 * Formula    time = latency + bytes / bandwidth, for the fastest of rings and trees and of NCCL's
 *            three protocols. This is the model by which NCCL itself chooses among them
 *            (src/graph/tuning.cc of NVIDIA/nccl; its latencies are in predict.c).
 *            Rings: W-1 steps for a gather or a reduce-scatter, 2 (W-1) for an all-reduce; nodes-1
 *            of them, or twice that, go over the network. Each rank moves (W-1)/W of the bytes, or
 *            twice that, or for a broadcast all of them, at the bus bandwidth.
 *            Trees, for all-reduce only: 2 (G-1) steps in a node of G GPUs, and 2 log2(nodes) over
 *            the network; twice the bytes at 0.9 of the bus bandwidth
 * Left out   NVLink SHARP and PAT, which newer versions use and which are faster; NCCL's
 *            corrections of trees by size (0.5 to 1), which make trees slower between 4 KB and 64 MB
 * Units      GB/s are 1e9 bytes per second
 */

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

#define DT_PLAN_MEMORY_SHARE 0.85

typedef struct dt_machine {
    dt_fabric fabric;
    double tflops; /* matrix rate in the recipe's precision */
    /* Rate of matrix products in the update: bf16 if the model computes in it, else fp32. */
    double matrix_tflops;
    double efficiency; /* share of tflops that the passes reach, 0 to 1 */
    double memory_gbs;
    double memory_bytes;
} dt_machine;

/* All messages of one kind in a step. */
typedef struct dt_prediction_messages {
    int64_t count;
    double bytes, largest_bytes, seconds;
    double across_bytes; /* sent by a node to others */
} dt_prediction_messages;

typedef struct dt_prediction {
    int64_t world_size;
    dt_memory memory;    /* of one rank */
    double step_tokens;  /* of all ranks */
    double token_flops;  /* forward and backward, without recomputation */
    double matrix_flops; /* of one step's update, on the rank with most of them */
    double pass_seconds, update_seconds;
    dt_prediction_messages messages[DT_TRAFFIC_KINDS];
    double message_seconds; /* time of all messages without overlap */
    double exposed_seconds; /* time in which the GPU waits for messages */
    double step_seconds;    /* pass_seconds + exposed_seconds + update_seconds */
    double tokens_per_second;
    double mfu;        /* model FLOPs, without recomputation, as a share of tflops */
    double efficiency; /* tokens per second over world_size times those of one GPU */
} dt_prediction;

/* Predicts a step. `recipe` must be checked; the number of nodes and ranks is taken from the
 * machine. vocab as in dt_memory_estimate. Scratch memory stays in the arena. */
dt_status dt_predict(dt_prediction *out, const dt_recipe *recipe, int64_t vocab,
                     const dt_machine *machine, dt_arena *arena, dt_error *err);

/* Returns the smallest number of GPUs on which the GPU waits for more than 5 % of the step,
 * searching powers of two within a node and then of nodes, up to DT_PLAN_GPUS_MAX; 0: none. */
#define DT_PLAN_GPUS_MAX      65536
#define DT_PLAN_EXPOSED_SHARE 0.05
dt_status dt_predict_overlap_end(int64_t *gpus, const dt_recipe *recipe, int64_t vocab,
                                 const dt_machine *machine, dt_arena *arena, dt_error *err);

#endif
