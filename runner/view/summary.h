/* summary: how a run ended, in a few lines or as the JSON of `launch --wait --json`. */
#ifndef DT_RUNNER_VIEW_SUMMARY_H
#define DT_RUNNER_VIEW_SUMMARY_H

#include "base/json.h"
#include "runner/term/term.h"
#include "runner/view/incidents.h"
#include "store/store.h"

/* To stdout; for a failed run with the reason and the last lines of the rank to blame. */
dt_status dt_summary_text(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* One object (new reference): run, name, state, ..., steps, seconds, checkpoint; the same, to stdout. */
dt_status dt_summary_object(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err);
dt_status dt_summary_json(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* What the rank to blame said last, and the kernel of it. */
void dt_summary_add_incident(dt_strbuf *out, const dt_term *term, const dt_incident *incident);

#endif
