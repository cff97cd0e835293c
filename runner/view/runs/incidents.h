/* incidents: selects the events that users must see, and finds the rank that made a run fail.
 *
 * Ownership  texts live in the arena
 */
#ifndef DT_RUNNER_VIEW_INCIDENTS_H
#define DT_RUNNER_VIEW_INCIDENTS_H

#include "store/store.h"

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

#endif
