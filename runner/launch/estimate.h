/* estimate: predicts what a run needs before it starts, and prints the prediction and what a launch would start.
 *
 * Time     steps x FLOPs of the model per step / rate, for the lowest and the highest rate: of past runs on
 *          the same devices (estimate.c); else of GPUs as in predict.h, at GPU_SHARE_LOW to GPU_SHARE_HIGH of the
 *          data sheet's rate; else of processors by their instruction set.
 *          Without evaluations, checkpoints, and the time before the first step
 */
#ifndef DT_RUNNER_LAUNCH_ESTIMATE_H
#define DT_RUNNER_LAUNCH_ESTIMATE_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/predict/predict.h"
#include "runner/term/term.h"

typedef struct dt_run_estimate {
    const dt_preflight *flight;
    /* GPU that ranks are assumed to have; NULL: the real devices */
    const dt_gpu_spec *gpu;
    double epochs;                    /* passes over the training data; NaN: unknown */
    double flops;                     /* FLOPs of the model, per step of all ranks */
    double matrix_flops;              /* FLOPs of an optimizer that works on whole matrices */
    double sent_bytes;                /* per rank and step, on average; NaN: too many to count */
    double across_bytes;              /* sent per step by each node to others */
    double across_sums_bytes;         /* those of sums within layers */
    double seconds_low, seconds_high; /* bounds of the time of the run; NaN: unknown */
    /* basis of the time: "3 finished runs here of about this size" */
    const char *basis;
} dt_run_estimate;

/* Makes the prediction; borrows the preflight. */
dt_status dt_run_estimate_make(dt_run_estimate *out, const dt_preflight *flight,
                               const dt_gpu_spec *gpu, dt_arena *arena, dt_error *err);

/* Returns "8 min to 14 min" or "not known", in the arena. */
const char *dt_run_estimate_time_text(const dt_run_estimate *estimate, dt_arena *arena);
/* Returns "2 files of 1.12 MB, 1.0M tokens to train on, ...", in the arena. */
const char *dt_run_estimate_data_text(const dt_run_estimate *estimate, dt_arena *arena);
/* Adds rows of two columns: data, epochs, arithmetic, communication, time. */
void dt_run_estimate_add(dt_table *table, const dt_run_estimate *estimate);
/* Adds the keys "data", "flops_per_step", "sent_bytes_per_step", "node_sent_bytes_per_step", "time" to the object. */
void dt_run_estimate_to_json(json_t *object, const dt_run_estimate *estimate);

/* Prints a line to stderr: size and time. */
void dt_run_estimate_note(const dt_run_estimate *estimate, const dt_call *call);

/* --- for GPUs that this machine need not have */

#define DT_GPUS_AS_OPTION(when)                                                                  \
    {                                                                                            \
        .name = "gpus-as", .kind = DT_OPTION_TEXT, .value = "CARD[:N]",                          \
        .help = when "assume N (8) of this GPU per node, without asking the nodes: h100, h200, " \
                     "a100, a100-40gb, l40s, rtx4090",                                           \
    }

/* Runs dt_preflight_with_gpus for --gpus-as; available_bytes are those of the GPU. */
dt_status dt_run_estimate_preflight(dt_preflight *out, const dt_gpu_spec **gpu,
                                    const dt_recipe *recipe, const dt_recipe_source *source,
                                    const char *gpus_as, dt_arena *arena, dt_error *err);
/* Returns DT_ERR_RECIPE, with a table of the memory, if a rank does not fit the GPU. */
dt_status dt_run_estimate_check_gpu(const dt_preflight *flight, const dt_gpu_spec *gpu,
                                    dt_error *err);

/* dry_run: prints what a launch would start, without starting it. */

/* Prints text, or {"version", "parameters", "tokens_per_step", "memory", "plan", "data", "time",
 * ...}. */
dt_status dt_dry_run_print(const dt_run_estimate *estimate, const dt_call *call, dt_error *err);
/* The same for a command: {"version", "task", "command", "workdir", "plan"}. */
dt_status dt_dry_run_print_command(const dt_preflight *flight, const dt_call *call, dt_error *err);
/* The same for a recipe whose task is to generate or to score: {"version", "task", "run", "lines", "parameters",
 * "ranks", "recipe"}. */
dt_status dt_dry_run_print_task(const dt_preflight *flight, const dt_call *call, dt_error *err);

#endif
