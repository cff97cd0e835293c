/* metric_kinds: the table of the metrics that dtrun itself records, and its forms for readers and for the
 * page.
 *
 * Adding a metric: a row in metric_kinds.c, an id here in the same order, and the line that computes its value, in
 * engine/train/report.c or runner/supervisor/collect. docs/metrics.md and web/page/metric_table.js are generated from the table by
 * `dtrun-metric-doc` (unit.metric_kinds fails until that is done); a chart of several metrics is a line of CHARTS in
 * web/page/run_charts.js.
 *
 * Every other name is the user's, from an import: its direction is found by the words that the name contains.
 */
#ifndef DT_BASE_METRIC_KINDS_H
#define DT_BASE_METRIC_KINDS_H

#include <stdbool.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_metric_id {
    DT_METRIC_LOSS,
    DT_METRIC_VALID_LOSS,
    DT_METRIC_VALID_BLEU,
    DT_METRIC_LEARNING_RATE,
    DT_METRIC_GRADIENT_NORM,
    DT_METRIC_TOKENS_PER_SECOND,
    DT_METRIC_STEP_SECONDS,
    DT_METRIC_LINES_PER_SECOND,
    DT_METRIC_SLOWEST_RANK,
    DT_METRIC_SLOWEST_SECONDS,
    DT_METRIC_GPU_BUSY_PERCENT,
    DT_METRIC_GPU_USED_BYTES,
    DT_METRIC_GPU_TEMPERATURE_C,
    DT_METRIC_GPU_POWER_WATTS,
    DT_METRIC_OUTSIDE_SECONDS,
    DT_METRIC_FLOPS_PER_SECOND,
    DT_METRIC_MATMUL_FLOPS_PER_SECOND,
    DT_METRIC_LEAST_STEP_SECONDS,
    DT_METRIC_HELD_BYTES,
    DT_METRIC_SENT_BYTES,
    DT_METRIC_LOSS_SCALE,
    DT_METRIC_SKIPPED_STEPS,
    DT_METRIC_REWARD_MARGIN,
    DT_METRIC_REWARD_ACCURACY,
    DT_METRIC_CPU_PERCENT,
    DT_METRIC_RUN_CPU_PERCENT,
    DT_METRIC_MEMORY_USED_BYTES,
    DT_METRIC_MEMORY_TOTAL_BYTES,
    DT_METRIC_RUN_MEMORY_BYTES,
    DT_METRIC_NODE_GPU_BUSY_PERCENT,
    DT_METRIC_NODE_GPU_USED_BYTES,
    DT_METRIC_NODE_GPU_TOTAL_BYTES,
    DT_METRIC_NODE_GPU_POWER_WATTS,
    DT_METRIC_NODE_GPU_TEMPERATURE_C,
    DT_METRIC_DISK_READ_BYTES_PER_SECOND,
    DT_METRIC_DISK_WRITTEN_BYTES_PER_SECOND,
    DT_METRIC_DISK_FREE_BYTES,
    DT_METRIC_RECEIVED_BYTES_PER_SECOND,
    DT_METRIC_SENT_BYTES_PER_SECOND,
    DT_METRIC_COUNT
} dt_metric_id;

typedef enum dt_metric_better { DT_BETTER_NEITHER, DT_BETTER_LOW, DT_BETTER_HIGH } dt_metric_better;

typedef enum dt_metric_source {
    DT_FROM_STEPS,       /* rank 0, for the steps since the last report */
    DT_FROM_EVALUATIONS, /* rank 0, at each evaluation: shown as dots */
    DT_FROM_EACH_RANK,   /* every rank with an NVIDIA GPU; the name ends in _rank_N */
    DT_FROM_SUPERVISOR,  /* the supervisor, from the events of all ranks */
    DT_FROM_NODES,       /* the agent of every node, by time; the name ends in _node_N */
    DT_FROM_NODE_GPUS,   /* the same for every GPU of the run; the name ends in _node_N_gpu_M */
} dt_metric_source;

typedef struct dt_metric_kind {
    const char *name;  /* in the history; never changes */
    const char *title; /* on the page */
    const char *unit;  /* "" for a plain number */
    const char *chart; /* id of its chart in run_charts.js; "": a chart of its own after these */
    dt_metric_better better;
    dt_metric_source source;
    bool internal;    /* shown last: it explains speed and memory */
    const char *help; /* a sentence without a full stop */
} dt_metric_kind;

/* Indexed by dt_metric_id; in the order in which a reader is interested in them. */
extern const dt_metric_kind dt_metric_kinds[DT_METRIC_COUNT];

/* Returns the name of a metric of the table. */
static inline const char *dt_metric_name(dt_metric_id id)
{
    return dt_metric_kinds[id].name;
}

/* Metrics by time begin with this prefix; their steps are seconds since 1970. Lists of all metrics leave them out. */
#define DT_METRIC_SYSTEM "system/"

/* The words that make a user's metric better when it is higher, NULL-terminated. */
extern const char *const dt_metric_high_words[];

/* Returns true if a higher value of the metric is better. */
bool dt_metric_more_is_better(const char *name);

/* metric_doc: writes the table of metrics as docs/metrics.md and as web/page/metric_table.js. */

void dt_metric_doc(dt_strbuf *out);
void dt_metric_script(dt_strbuf *out);

#ifdef __cplusplus
}
#endif

#endif
