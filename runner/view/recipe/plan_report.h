/* plan_report: prints the predictions of `dtrun plan` as text or JSON. */
#ifndef DT_RUNNER_VIEW_PLAN_REPORT_H
#define DT_RUNNER_VIEW_PLAN_REPORT_H

#include "base/arena.h"
#include "runner/predict/gpu_specs.h"
#include "runner/predict/predict.h"

#define DT_PLANNED_MOST 16

typedef struct dt_planned_size {
    int64_t nodes;
    dt_prediction prediction;
} dt_planned_size;

typedef struct dt_planned {
    dt_recipe recipe;
    int64_t vocab; /* 0: unknown without reading all data */
    const dt_gpu_spec *gpu;
    const dt_network *network;
    bool given_peak, given_node, given_network; /* values that options override */
    dt_machine machine;                         /* without its number of nodes */
    dt_planned_size sizes[DT_PLANNED_MOST];
    int sizes_count;
    int64_t overlap_end; /* dt_predict_overlap_end */
} dt_planned;

dt_status dt_plan_report_text(const dt_planned *planned, dt_arena *arena, dt_error *err);
/* {"version", "model", "machine", "sizes": [...], "overlap_end_gpus"} */
dt_status dt_plan_report_json(const dt_planned *planned, dt_error *err);

#endif
