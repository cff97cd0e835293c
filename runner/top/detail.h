/* detail: shows one run in the whole terminal: its state, the curve of one metric, and its last log lines.
 *
 * Ownership  everything lives in the arena that is passed
 */
#ifndef DT_RUNNER_TOP_DETAIL_H
#define DT_RUNNER_TOP_DETAIL_H

#include "runner/term/term.h"
#include "runner/view/compare/curve.h"
#include "runner/view/follow/log_tail.h"
#include "runner/view/runs/timing.h"
#include "store/store.h"

typedef struct dt_top_detail {
    dt_run run;
    dt_timing timing;
    const char *metric, **names;
    int64_t names_count;
    dt_curve curve;
    dt_log_line *lines;
    int64_t lines_count;
    bool several_ranks;
} dt_top_detail;

/* Reads as much as fits on `term`. */
dt_status dt_top_detail_read(dt_top_detail *out, dt_store *store, const char *run,
                             const char *metric, const dt_term *term, int64_t now_ms,
                             dt_arena *arena, dt_error *err);
/* Adds at most `rows` lines. */
void dt_top_detail_add(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail, int rows,
                       dt_arena *arena);

#endif
