/* log_print: prints lines of log_tail: as text with a separator between attempts, as JSON lines, or
 * as one object.
 */
#ifndef DT_RUNNER_VIEW_LOG_PRINT_H
#define DT_RUNNER_VIEW_LOG_PRINT_H

#include "runner/term/term.h"
#include "runner/view/follow/log_tail.h"

/* The boundaries between attempts, printed between the lines by their times with the cause. Starts zeroed. */
typedef struct dt_log_boundaries {
    dt_attempt *attempts;
    int64_t count, printed; /* printed: attempts whose boundary was printed */
    bool begun;
} dt_log_boundaries;

dt_status dt_log_boundaries_read(dt_log_boundaries *out, dt_store *store, const char *run,
                                 dt_arena *arena, dt_error *err);

/* Prefixes lines with their rank if there are several. Control characters are removed on a terminal only. */
dt_status dt_log_print_lines(const dt_log_line *lines, int64_t count, const dt_log_tail *tail,
                             dt_log_boundaries *between, const dt_term *term, dt_arena *arena,
                             dt_error *err);
/* Prints one object a line; restarts are among the objects of the run. */
dt_status dt_log_print_objects(const dt_log_line *lines, int64_t count, dt_error *err);
/* Prints one object with lines and history. */
dt_status dt_log_print_json(const dt_log_line *lines, int64_t count,
                            const dt_log_boundaries *between, const dt_run *run, dt_error *err);

#endif
