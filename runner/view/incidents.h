/* incidents: which events of a run a person must hear of, and why a run failed.
 *
 * Ownership  texts live in the arena
 */
#ifndef DT_RUNNER_VIEW_INCIDENTS_H
#define DT_RUNNER_VIEW_INCIDENTS_H

#include "store/store.h"

/* One sentence, or NULL where the event is none of a person's business. */
const char *dt_incident_sentence(const dt_store_event *event, dt_arena *arena);

typedef struct dt_incident {
    int64_t rank;       /* -1: none is to blame */
    const char **lines; /* its last ones, at most 50 */
    int64_t lines_count;
    const char **kernel_lines; /* what the kernel said of its end, as of memory that ran out */
    int64_t kernel_lines_count;
} dt_incident;

/* The rank of the newest attempt that was the first, by one clock, to end badly of its own, or else
 * to end badly at all; and what it said last. */
dt_status dt_incident_find(dt_incident *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err);

#endif
