/* summary: prints how a run ended, as text or as the JSON object of `launch --wait --json`. */
#ifndef DT_RUNNER_VIEW_SUMMARY_H
#define DT_RUNNER_VIEW_SUMMARY_H

#include "base/json.h"
#include "runner/term/term.h"
#include "runner/view/runs/incidents.h"
#include "store/store.h"

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
