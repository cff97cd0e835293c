/* predict: predicts the time of a recipe's step on a number of GPUs, by arithmetic alone.
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
 *            engine/strategy/async_comm.h, and another one those among replicas; a stage waits for the
 *            messages that it needs
 * Left out   the compute that collectives take from the GPU while they run, the host, stragglers,
 *            sums of a few numbers, evaluation and checkpoints: a real run is slower
 */
#ifndef DT_RUNNER_PREDICT_PREDICT_H
#define DT_RUNNER_PREDICT_PREDICT_H

#include "recipes/cost/memory.h"
#include "runner/predict/collective.h"

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
