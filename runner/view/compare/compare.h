/* compare: compares the recipes and metrics of runs, reads curves in buckets or as CSV, and compares
 * translations by BLEU. */
#ifndef DT_RUNNER_VIEW_COMPARE_COMPARE_H
#define DT_RUNNER_VIEW_COMPARE_COMPARE_H

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/bleu/bleu.h"
#include "runner/term/term.h"
#include "runner/view/runs/results.h"
#include "runner/view/runs/runs.h"
#include "store/curve.h"

/* curve: reads the points of metrics: one metric of one run in buckets, or all of several runs as CSV.
 *
 * Ownership  arrays live in the arena. Points are read one by one and not stored.
 */

#define DT_CURVE_SPARK_MOST 32 /* maximum buckets of a curve drawn in one line */

typedef struct dt_curve_point {
    int64_t step;
    double value;
} dt_curve_point;

typedef struct dt_curve {
    int64_t count;                  /* 0: the run has none */
    dt_curve_point lowest, highest; /* without NaN; step -1: none */
    dt_curve_point last;            /* may be NaN; step -1: none */
    double *means;                  /* of each bucket; NaN if it has no point */
    size_t buckets;
    int64_t first_step, last_step; /* range of the buckets */
} dt_curve;

/* Reads steps first_step to last_step; buckets may be 0. */
dt_status dt_curve_read(dt_curve *out, dt_store *store, const char *run, const char *name,
                        int64_t first_step, int64_t last_step, size_t buckets, dt_arena *arena,
                        dt_error *err);
/* Finds the first and the last step; *there false: the run has no points. */
dt_status dt_curve_extent(bool *there, int64_t *first_step, int64_t *last_step, dt_store *store,
                          const char *run, const char *name, dt_arena *arena, dt_error *err);
/* Reads the whole curve in at most `most` buckets of equal width, from the buckets that the store keeps: the
 * time does not depend on the number of points. Sets out->first_step and out->last_step; the steps of lowest
 * and highest are -1 (unknown). */
dt_status dt_curve_sketch(dt_curve *out, dt_store *store, const char *run, const char *name,
                          size_t most, dt_arena *arena, dt_error *err);
/* Draws the curve in one line of at most `columns` columns; it may have more buckets, up to
 * DT_CURVE_SPARK_MOST. Draws nothing without Unicode. */
void dt_curve_add_spark(dt_strbuf *out, const dt_term *term, const dt_curve *curve, size_t columns);
const dt_curve_point *dt_curve_best(const dt_curve *curve, const char *name);

/* wide: writes the points of runs as CSV, one line a step and one column a metric. */

typedef struct dt_run_points {
    const char *run;
    dt_metric *points; /* by name, then step */
    int64_t count;
} dt_run_points;

/* Adds "step,loss,...", or with several runs "run,step,loss,...". Missing values are empty. */
dt_status dt_wide_add(dt_strbuf *out, const dt_run_points *runs, size_t count, dt_arena *arena,
                      dt_error *err);

/* bleu: computes BLEU of translations (engine/bleu/bleu.h) and prints it as sacreBLEU does, or as JSON:
 *   {"bleu", "precisions", "brevity_penalty", "ratio", "hypothesis_words", "reference_words", "lines", "signature"}
 */

#define DT_BLEU_FILE_MOST ((size_t)1 << 30)

extern const char *const dt_bleu_tokenizers[]; /* for an option; ends with NULL */

typedef struct dt_bleu_report {
    dt_bleu_counts counts;
    dt_bleu bleu;
    int64_t lines;
    const char *signature; /* in the arena */
} dt_bleu_report;

/* Compares line by line. `names` name the two texts in messages. DT_ERR_USAGE if the numbers of
 * lines differ or are 0. */
dt_status dt_bleu_compare(dt_bleu_report *out, const dt_strbuf *ours, const dt_strbuf *theirs,
                          const char *const names[2], const char *tokenizer, dt_arena *arena,
                          dt_error *err);
/* Checks, before `input` is translated, that it has as many lines as `reference`. A pipe is not
 * checked. */
dt_status dt_bleu_expect(const char *input, const char *reference, dt_error *err);
/* Adds one line with its line break. */
void dt_bleu_add_text(dt_strbuf *out, const dt_bleu_report *report);
void dt_bleu_add_json(json_t *object, const dt_bleu_report *report);

/* comparison: compares the recipes and the metrics of runs. */

typedef struct dt_comparison {
    dt_store *store;
    dt_run_entry *runs; /* differences are to the first; the caller releases them */
    size_t count;
    const char **keys; /* recipe keys that differ */
    size_t keys_count;
    const char **metrics;
    size_t metrics_count;
    dt_curve *curves;    /* metric m of run r at m * count + r */
    int64_t *first_step; /* of each metric, over all runs */
    int64_t *last_step;
    dt_task_results *results; /* of each run: the newest result of each evaluation task */
} dt_comparison;

/* Fills in the rest of *io, whose store, runs and count are given. Compares `metrics` (count 0: all
 * metrics of all runs), with curves of `buckets` buckets. DT_ERR_USAGE if no run has one of the
 * metrics. */
dt_status dt_comparison_make(dt_comparison *io, const char *const *metrics, size_t metrics_count,
                             size_t buckets, dt_arena *arena, dt_error *err);

/* {"runs": [{run, name, state, ..., "recipe": {key: value}, "metrics": {name: {best, last}},
 * "tasks": {...}}]}.
 * New reference. */
json_t *dt_comparison_to_json(dt_comparison *comparison, dt_arena *arena);
void dt_comparison_add(dt_strbuf *out, const dt_term *term, dt_comparison *comparison,
                       dt_arena *arena);

#endif
