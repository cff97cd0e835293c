/* rows: reads and draws the table of runs, one line each.
 *
 *     name         run     state    step          loss    speed           left   loss
 *   > shakespeare  k3v9x2  running  1,080/2,000   1.8421  41.2k tokens/s  53s    ▇▅▄▃▂▂▁▁
 *
 * Ownership  everything lives in the arena that is passed
 */
#ifndef DT_RUNNER_TOP_ROWS_H
#define DT_RUNNER_TOP_ROWS_H

#include "runner/term/term.h"
#include "runner/view/compare/curve.h"
#include "runner/view/runs/timing.h"
#include "store/store.h"

typedef enum dt_top_sort {
    DT_TOP_NEWEST,
    DT_TOP_NAME,
    DT_TOP_STATE,
    DT_TOP_STEP, /* the share of steps done */
    DT_TOP_LOSS,
    DT_TOP_SPEED,
    DT_TOP_LEFT,
    DT_TOP_SORTS
} dt_top_sort;
/* "newest", ...; ends with NULL. */
extern const char *const dt_top_sort_names[];

typedef struct dt_top_wish {
    const char *metric; /* of the small curves */
    dt_top_sort sort;
    bool all; /* also runs that ended long ago, up to a limit */
} dt_top_wish;

typedef struct dt_top_row {
    const dt_run *run;
    dt_timing timing;
    dt_curve curve;
} dt_top_row;

typedef struct dt_top_rows {
    dt_top_row *items;
    int64_t count;
    int64_t running, waiting, ended; /* numbers of runs */
    const char *metric;
} dt_top_rows;

/* Reads active runs and runs that ended in the last ten minutes. */
dt_status dt_top_rows_read(dt_top_rows *out, dt_store *store, const dt_top_wish *wish,
                           int64_t now_ms, dt_arena *arena, dt_error *err);
/* Adds "2 running, 1 waiting, 3 ended". */
void dt_top_rows_count(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows);
/* Adds at most `most` rows from `first` on; selected: -1 for none. */
void dt_top_rows_add(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows, int64_t first,
                     int64_t most, int64_t selected, int64_t now_ms, dt_arena *arena);

#endif
