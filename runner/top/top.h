/* top: shows a live table of all runs, and one of them in the whole terminal.
 *
 * Reads once a second; the store may be moved or replaced while it runs. Read errors are shown in the last line,
 * below the data that was read before.
 */
#ifndef DT_RUNNER_TOP_TOP_H
#define DT_RUNNER_TOP_TOP_H

#include "runner/cli/command.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"
#include "store/run.h"

/* rows: reads, filters, sorts and draws the table of runs, one line each.
 *
 *     name         run     state    step          loss    speed           left   loss
 *   > shakespeare  k3v9x2  running  1,080/2,000   1.8421  41.2k tokens/s  53s    ▇▅▄▃▂▂▁▁
 *
 * Ownership  everything lives in the arena that is passed
 */

typedef enum dt_top_sort {
    DT_TOP_NEWEST,
    DT_TOP_NAME,
    DT_TOP_RUN,
    DT_TOP_STATE,
    DT_TOP_STEP, /* the share of steps done */
    DT_TOP_LOSS,
    DT_TOP_SPEED,
    DT_TOP_LEFT,
    DT_TOP_METRIC, /* the last value of the metric of the small curves */
    DT_TOP_SORTS
} dt_top_sort;
/* "newest", ...; ends with NULL. */
extern const char *const dt_top_sort_names[];

typedef struct dt_top_wish {
    const char *metric; /* of the small curves */
    dt_top_sort sort;
    bool reverse;
    bool all; /* also runs that ended long ago, up to a limit */
    const char *
        filter; /* words; each must be in the name, id, tags, group or state of a run. "": all runs */
} dt_top_wish;

typedef struct dt_top_row {
    const dt_run *run;
    bool marked; /* its curve is drawn with that of the run that is opened */
    dt_timing timing;
    dt_curve curve;
    const char *
        wait; /* "#2: 1 GPU free on gpu1; r12 ends in 20 min" of a run in the queue; NULL: it is in none */
} dt_top_row;

typedef struct dt_top_rows {
    dt_top_row *items;
    int64_t count;
    int64_t running, waiting, ended; /* numbers of runs */
    bool more;                       /* there are older runs beyond the limit */
    dt_top_wish wish;
} dt_top_rows;

/* Reads active runs and runs that ended in the last ten minutes; neither filters nor sorts. */
dt_status dt_top_rows_read(dt_top_rows *out, dt_store *store, const dt_top_wish *wish,
                           int64_t now_ms, dt_arena *arena, dt_error *err);
/* Makes the sorted rows of `all` that pass the filter; they share what they point to. */
void dt_top_rows_select(dt_top_rows *out, const dt_top_rows *all, const dt_top_wish *wish,
                        dt_arena *arena);
/* Adds "2 running, 1 waiting, 3 ended". */
void dt_top_rows_count(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows);
/* Adds at most `most` rows from `first` on; selected: -1 for none. */
void dt_top_rows_add(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows, int64_t first,
                     int64_t most, int64_t selected, int64_t now_ms, dt_arena *arena);

/* detail: shows one run in the whole terminal: its state, the curve of one metric, and its last log lines. The curves of
 * other runs can be in the same plot, over the same steps, with a line for each run.
 *
 * Ownership  everything lives in the arena that is passed
 */

#define DT_TOP_OTHERS_MOST 5

typedef struct dt_top_other {
    dt_run run;
    dt_curve curve;
} dt_top_other;

typedef struct dt_top_detail {
    dt_run run;
    dt_top_other others[DT_TOP_OTHERS_MOST];
    size_t others_count;
    dt_timing timing;
    const char *metric, **names;
    int64_t names_count;
    dt_curve curve;
    dt_log_line *lines;
    int64_t lines_count;
    bool several_ranks;
} dt_top_detail;

/* Reads as much as fits on `term`. others: ids, at most DT_TOP_OTHERS_MOST; one that is the run itself or no longer exists
 * is left out. */
dt_status dt_top_detail_read(dt_top_detail *out, dt_store *store, const char *run,
                             const char *const *others, size_t others_count, const char *metric,
                             const dt_term *term, int64_t now_ms, dt_arena *arena, dt_error *err);
/* Adds at most `rows` lines. */
void dt_top_detail_add(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail, int rows,
                       dt_arena *arena);

/* Runs until the user quits. open: a run to show first, or NULL. Without a terminal, or with
 * --json, prints the rows once. */
dt_status dt_top(const char *open, const dt_top_wish *wish, dt_call *call, dt_error *err);

#endif
