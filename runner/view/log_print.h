/* log_print: lines of log_tail on stdout: as text with a word between attempts, as an object a line, or as one.
 */
#ifndef DT_RUNNER_VIEW_LOG_PRINT_H
#define DT_RUNNER_VIEW_LOG_PRINT_H

#include "runner/term/term.h"
#include "runner/view/log_tail.h"

/* Where one attempt ends and the next begins, and why: said between the lines, by their times. Zeroed at the
 * start. */
typedef struct dt_log_boundaries {
    dt_attempt *attempts;
    int64_t count, said; /* attempts that need no word any more */
    bool begun;
} dt_log_boundaries;

dt_status dt_log_boundaries_read(dt_log_boundaries *out, dt_store *store, const char *run,
                                 dt_arena *arena, dt_error *err);

/* Which rank spoke is named where more than one is shown. A terminal is not given the control
 * characters of a log; a file or a pipe gets the line as it is. */
dt_status dt_log_print_lines(const dt_log_line *lines, int64_t count, const dt_log_tail *tail,
                             dt_log_boundaries *between, const dt_term *term, dt_arena *arena,
                             dt_error *err);
/* An object a line; restarts are among those of the run. */
dt_status dt_log_print_objects(const dt_log_line *lines, int64_t count, dt_error *err);
/* One object, with lines and history. */
dt_status dt_log_print_json(const dt_log_line *lines, int64_t count,
                            const dt_log_boundaries *between, const dt_run *run, dt_error *err);

#endif
