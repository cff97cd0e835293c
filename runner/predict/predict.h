/* predict: predicts the time of a recipe's step on a number of GPUs, from arithmetic alone.
 *
 * Compute    FLOPs of each stage (recipes/cost/traffic.h) as the architecture counts them for a token
 *            (recipes/architecture/), times the rows = sequences x tokens; what activation
 *            checkpointing computes again but for the last block; over the GPU's matrix rate
 *            times `efficiency`. What is not a product is inside the efficiency
 * Update     bytes of memory that an element of a rank's share costs: gradient zeroed, read for the
 *            norm and by the optimizer, 12; master and moments read and written, 8 each; the
 *            compute type's copy written, 2; over DT_PLAN_MEMORY_SHARE of the memory's bandwidth. Of an
 *            optimizer that steps matrices whole, the FLOPs of the rank that has most of them as well
 *            (recipes/cost/matrices.h), over the rate of their type times `efficiency`
 * Overlap    one channel takes the messages in the order of their launch, as
 *            engine/strategy/async_comm.h does; a stage waits for those that it needs
 * Left out   what collectives take from the compute they run beside, the host, stragglers, sums of
 *            a few numbers, evaluation and checkpoints: a run is slower than its plan
 */
#ifndef DT_RUNNER_PREDICT_PREDICT_H
#define DT_RUNNER_PREDICT_PREDICT_H

#include "recipes/cost/memory.h"
#include "runner/predict/collective.h"

#define DT_PLAN_MEMORY_SHARE 0.85

typedef struct dt_machine {
    dt_fabric fabric;
    double tflops; /* of the recipe's precision */
    double
        matrix_tflops; /* of products in the update: bf16 where the model computes in it, else fp32 */
    double efficiency; /* 0..1 of tflops that the passes reach */
    double memory_gbs;
    double memory_bytes;
} dt_machine;

/* Messages of one kind in a step. */
typedef struct dt_prediction_messages {
    int64_t count;
    double bytes, largest_bytes, seconds;
} dt_prediction_messages;

typedef struct dt_prediction {
    int64_t world_size;
    dt_memory memory;    /* of a rank */
    double step_tokens;  /* of all ranks */
    double token_flops;  /* of both passes, nothing counted twice */
    double matrix_flops; /* of a step's update, of the rank that has most */
    double pass_seconds, update_seconds;
    dt_prediction_messages messages[DT_TRAFFIC_KINDS];
    double message_seconds; /* if nothing ran beside them */
    double exposed_seconds; /* of them, during which the GPU waits */
    double step_seconds;    /* passes, exposed, update */
    double tokens_per_second;
    double mfu;        /* model FLOPs over tflops; nothing for what is computed again */
    double efficiency; /* tokens per second over world_size times those of one GPU */
} dt_prediction;

/* `recipe` must be checked; the number of nodes and ranks is the machine's. vocab as in dt_memory_estimate. Scratch memory
 * stays in the arena. */
dt_status dt_predict(dt_prediction *out, const dt_recipe *recipe, int64_t vocab,
                     const dt_machine *machine, dt_arena *arena, dt_error *err);

/* Returns the smallest number of GPUs, in powers of two within a node and then of nodes up to DT_PLAN_GPUS_MAX, on which
 * the GPU waits for more than 5 % of the step; 0: none. */
#define DT_PLAN_GPUS_MAX      65536
#define DT_PLAN_EXPOSED_SHARE 0.05
dt_status dt_predict_overlap_end(int64_t *gpus, const dt_recipe *recipe, int64_t vocab,
                                 const dt_machine *machine, dt_arena *arena, dt_error *err);

#endif
