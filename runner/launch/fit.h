/* fit: what a run takes, said before it starts: its data, memory, messages, arithmetic and time.
 *
 * Time     steps x FLOPs of the model in a step over a rate, at its lowest and its highest: of past runs
 *          on the same devices (past_speed.h); else of GPUs as predict.h has it, at GPU_SHARE_LOW to
 *          GPU_SHARE_HIGH of the data sheet's rate; else of processors by their instruction set.
 *          Without evaluations, checkpoints, and what precedes the first step
 */
#ifndef DT_RUNNER_LAUNCH_FIT_H
#define DT_RUNNER_LAUNCH_FIT_H

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/predict/gpu_specs.h"
#include "runner/term/table.h"

typedef struct dt_fit {
    const dt_preflight *flight;
    const dt_gpu_spec *gpu;           /* that ranks are taken to have; NULL: what there is */
    double epochs;                    /* passes over the training data; NaN: not known */
    double flops;                     /* of the model, in a step of all ranks */
    double matrix_flops;              /* and of an optimizer that steps matrices whole */
    double sent_bytes;                /* by a rank in a step, on average; NaN: too many to count */
    double seconds_low, seconds_high; /* of the run; NaN: not known */
    const char *basis;                /* of the time: "3 finished runs here of about this size" */
} dt_fit;

/* Borrows the preflight. */
dt_status dt_fit_make(dt_fit *out, const dt_preflight *flight, const dt_gpu_spec *gpu,
                      dt_arena *arena, dt_error *err);

/* "8 to 14 minutes", "about 3 hours", "not known"; in the arena. */
const char *dt_fit_time_text(const dt_fit *fit, dt_arena *arena);
/* "2 files, 1.12 MB: 1.0M tokens, 65 characters". */
const char *dt_fit_data_text(const dt_fit *fit, dt_arena *arena);
/* Rows of two columns: data, epochs, arithmetic, messages, time. */
void dt_fit_add(dt_table *table, const dt_fit *fit);
/* Keys "data", "flops_per_step", "sent_bytes_per_step", "time" into the object. */
void dt_fit_to_json(json_t *object, const dt_fit *fit);

/* A line to stderr: how large, how long. */
void dt_fit_note(const dt_fit *fit, const dt_call *call);

/* --- for GPUs that need not be there */

#define DT_GPUS_AS_OPTION(when)                                                                  \
    {                                                                                            \
        .name = "gpus-as", .kind = DT_OPTION_TEXT, .value = "CARD[:N]",                          \
        .help = when "assume N (8) of this GPU per node, without asking the nodes: h100, h200, " \
                     "a100, a100-40gb, l40s, rtx4090",                                           \
    }

/* The GPU of that name (gpu_specs.h), and how many a node has. DT_ERR_USAGE. */
dt_status dt_fit_parse_gpus(const dt_gpu_spec **out, int64_t *count, const char *text,
                            dt_error *err);
/* dt_preflight_with_gpus as --gpus-as says; available_bytes are the GPU's. */
dt_status dt_fit_preflight(dt_preflight *out, const dt_gpu_spec **gpu, const dt_recipe *recipe,
                           const dt_recipe_source *source, const char *gpus_as, dt_arena *arena,
                           dt_error *err);
/* Whether a rank fits the GPU: DT_ERR_RECIPE with the table of its parts. */
dt_status dt_fit_check_gpu(const dt_preflight *flight, const dt_gpu_spec *gpu, dt_error *err);

#endif
