/* summary: prints how a run ended, and finds the events that explain why. */
#ifndef DT_RUNNER_VIEW_RUNS_SUMMARY_H
#define DT_RUNNER_VIEW_RUNS_SUMMARY_H

#include "base/json.h"
#include "runner/term/term.h"
#include "store/store.h"

/* incidents: selects the events that users must see, and finds the rank that made a run fail.
 *
 * Ownership  texts live in the arena
 */

/* Returns a sentence on the event, or NULL if users need not see it. */
const char *dt_incident_sentence(const dt_store_event *event, dt_arena *arena);

typedef struct dt_incident {
    int64_t rank;       /* -1: no rank failed */
    const char **lines; /* its last lines of output, at most 50 */
    int64_t lines_count;
    const char **kernel_lines; /* kernel messages on its end, for example out of memory */
    int64_t kernel_lines_count;
} dt_incident;

/* Finds the rank of the newest attempt that failed first on its own, or else that failed first (times
 * are of one clock); with its last output. */
dt_status dt_incident_find(dt_incident *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err);

/* Prints to stdout; for a failed run with the reason and the last lines of the rank that failed. */
dt_status dt_summary_text(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* Makes the object (new reference) with run, name, state, ..., steps, seconds and checkpoint. dt_summary_json
 * prints it to stdout. */
dt_status dt_summary_object(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err);
dt_status dt_summary_json(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* Adds the last output of the rank that failed, and the kernel messages on it. */
void dt_summary_add_incident(dt_strbuf *out, const dt_term *term, const dt_incident *incident);

#endif
